#include <algorithm>
#include <cfloat>
#include <clocale>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <system_error>
#include <vector>

#include "check.hpp"
#include "exact_memory.hpp"
#include "file_kind.hpp"
#include "libsvm_data.hpp"
#include "libsvm_model.hpp"
#include "mapped_file.hpp"
#include "number.hpp"

namespace text {

using namespace approxsvm::text;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
using Doubles = std::vector<double>;
using Ints = std::vector<std::int32_t>;
using Longs = std::vector<std::int64_t>;

Exact<char> exact(const std::string& text) {
    return Exact<char>(std::vector<char>(text.begin(), text.end()));
}

/// Compares value and end with strtod's. The copy has the exact size, so that a sanitizer sees any byte read past the
/// end.
void check_as_strtod(const std::string& text) {
#if !defined(__GLIBC__)
    // Other C libraries end hexadecimal numbers and nan(...) elsewhere; our parser follows glibc everywhere.
    if (text.find_first_of("xX(") != std::string::npos) return;
#endif
    const Exact<char> copy = exact(text);
    double value = -123.0;
    const char* const end = parse_real(copy.data.get(), copy.data.get() + copy.size, value);
    char* expected_end = nullptr;
    const double expected = std::strtod(text.c_str(), &expected_end);
    const std::ptrdiff_t n_expected = expected_end - text.c_str();
    const std::ptrdiff_t n = end == nullptr ? 0 : end - copy.data.get();
    const bool same_value = std::memcmp(&value, &expected, sizeof value) == 0;
    if (n != n_expected || !(n == 0 || same_value || (std::isnan(value) && std::isnan(expected)))) {
        check::report(__FILE__, __LINE__,
                      "'" + text.substr(0, 60) + "' gives " + check::show(value) + " after " + std::to_string(n) +
                          " bytes, strtod " + check::show(expected) + " after " + std::to_string(n_expected));
    }
}

template <class... Numbers>
std::string print(const char* format, Numbers... numbers) {
    char text[2000];
    std::snprintf(text, sizeof text, format, numbers...);
    return text;
}

/// Splits a string into the substrings that end in '|'.
std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> parts;
    for (std::size_t first = 0, end; (end = text.find('|', first)) != std::string::npos; first = end + 1) {
        parts.push_back(text.substr(first, end - first));
    }
    return parts;
}

std::string drawn(Random& random, std::size_t n, const std::string& alphabet = "0123456789") {
    std::string text;
    while (text.size() < n) text += alphabet[random() % alphabet.size()];
    return text;
}

double random_double(Random& random) {
    const std::uint64_t bits = random();
    double value;
    std::memcpy(&value, &bits, sizeof value);
    return std::isfinite(value) ? value : 1.0;
}

/// The message of a TextError, preceded by its line number; "" if there is no error.
template <class Parse>
std::string error_of(Parse parse) {
    try {
        parse();
    } catch (const TextError& error) {
        return std::to_string(error.line) + ": " + error.what();
    }
    return "";
}
std::string model_error(const std::string& text) {
    return error_of([&] {
        const Exact<char> copy = exact(text);
        parse_libsvm_model({copy.data.get(), copy.size});
    });
}
std::string data_error(const std::string& text, int n_threads = 1) {
    return error_of([&] { parse_libsvm_data(text, n_threads); });
}

void expect_part(const std::string& found, const std::string& part) {
    if (part.empty() ? !found.empty() : found.find(part) == std::string::npos)
        check::report(__FILE__, __LINE__, "'" + found + "' without '" + part + "'");
}

/// The three-class model varied by most model tests.
const std::string three_classes =
    "svm_type c_svc\n"
    "kernel_type rbf\n"
    "gamma 0.25\n"
    "nr_class 3\n"
    "total_sv 4\n"
    "rho 0.5 -0.25 1e-3\n"
    "label 5 -2 7\n"
    "nr_sv 1 2 1\n"
    "SV\n"
    "0.5 -1 1:0.25 3:1 \n"
    "-0.5 0.75 2:-7.5 \n"
    "1 0.125 \n"
    "-1 -2 1:1 7:0.5 \n";

const std::string regression =
    "svm_type epsilon_svr\n"
    "kernel_type rbf\n"
    "gamma 1\n"
    "nr_class 2\n"
    "total_sv 1\n"
    "rho -3\n"
    "SV\n"
    "1 1:0.5 \n";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    if (at == std::string::npos) throw std::logic_error("the test's text has no '" + from + "'");
    return text.replace(at, from.size(), to);
}
std::string varied(const std::string& from, const std::string& to) {
    return replaced(three_classes, from, to);
}

template <class A, class B>
bool same(const A& a, const B& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

bool means_the_same(const std::string& text) {
    const LibsvmModel a = parse_libsvm_model(text), b = parse_libsvm_model(three_classes);
    return a.svm_type == b.svm_type && a.kernel_type == b.kernel_type && a.degree == b.degree && a.gamma == b.gamma &&
           a.coef0 == b.coef0 && a.n_classes == b.n_classes && a.n_sv == b.n_sv && a.n_coef == b.n_coef &&
           a.rho == b.rho && a.labels == b.labels && a.n_sv_per_class == b.n_sv_per_class &&
           a.probabilities == b.probabilities && a.coef == b.coef && a.indptr == b.indptr && a.indices == b.indices &&
           a.values == b.values && a.min_index == b.min_index && a.max_index == b.max_index;
}

}  // namespace

// --- numbers ---

TEST(reals_are_read_as_strtod_reads_them) {
    for (const std::string& text : split(
             "|1|0|-0|+1|-1|0.169525|-0.020372|0.0|.5|5.|-.5|+.5e1|1e5|1E+5|1e-5|00012|0.1e|1e+|1e+x|1x|0x|0xg|1:|1.5:"
             "2|"
             "1,2|+|-|.|-.|e5|+-1|--1|abc|1\t|1\r|1 2|1..2|1.2.3|12345678|0.12345678|0.123456789|0.1234567a|"
             "0.1234567890123456789|123456789012345678901234567890|"
             // names
             "inf|INF|-Inf|+infinity|INFINITY|infinit|infinityx|nan|-NaN|nan(|nan()|nan(12_ab)|nan(1-2)|nanx|in|na|i|n|"
             // overflow and underflow
             "1e308|1e309|-1e309|1.7976931348623157e308|1.7976931348623158e308|1.7976931348623159e308|"
             "179769313486231580793728971405303415079934132710037826936173778980444968292764750946649017977587207096|"
             "2.2250738585072014e-308|2.2250738585072011e-308|4.9406564584124654e-324|"
             "2.4703282292062327e-324|2.4703282292062328e-324|1e-323|1e-324|-1e-400|1e999999999999999999999|"
             "1e-99999999999999999999|0e999999999999|0.0e-99999999|0x1p1023|0x1p1024|0x1p-1074|0x1p-1075|"
             "0x1.8p-1075|0x1p99999999999999999999|0x1p-99999999999999999999|0x0p99999|"
             // hexadecimal
             "0x1.00000000000008p0|0x1.000000000000080p0|0x1.00000000000018p0|0x1."
             "000000000000080000000000000000000001p0|"
             "0x.8|0X1P+4|0x1.|0x.p1|0x1p|0x1p+|0x1.8p-1074|0x1.fffffffffffff8p1023|0x0.0000000000000000001p80|"))
        check_as_strtod(text);
    for (const std::string& text :
         split("9007199254740992|9007199254740993|9007199254740994|9007199254740995|0.9007199254740993|"
               "900719925474099.3|9999999999999999999|18446744073709551615|18446744073709551617|"
               "0.0000000000000000001|0.00000000000000000001|1e22|1e23|9007199254740991e22|")) {
        for (const std::string& around : {text, "-" + text, text + " 1:2"}) check_as_strtod(around);
    }
    check_as_strtod(std::string(1000, '0') + "1");
    check_as_strtod("0." + std::string(100000, '0') + "1e100001");
    check_as_strtod("1" + std::string(100000, '0') + "e-100000");
    double value = 7.0;
    const std::string blank = " 1";  // strtod skips leading white space; parse_real leaves it to its callers
    CHECK(parse_real(blank.data(), blank.data() + 2, value) == nullptr);
    CHECK_EQ(value, 7.0);
}

TEST(random_reals_are_read_as_strtod_reads_them) {
    Random random(1);
    for (int i = 0; i < 8000; ++i) {
        const double value = random_double(random);
        for (const char* format : {"%.17g", "%.8g", "%a"}) check_as_strtod(print(format, value));
        check_as_strtod(print("%.6g", static_cast<double>(random() % 2000001) / 1e6 - 1.0));
        std::string text = drawn(random, random() % 12) + "." + drawn(random, random() % 24);
        if (random() % 2 == 0) text.insert(0, "-");
        if (random() % 3 == 0) text += "e" + std::to_string(static_cast<int>(random() % 60) - 30);
        if (random() % 3 == 0) text += random() % 2 == 0 ? " 17:3" : ":";
        check_as_strtod(text);
        text = drawn(random, random() % 14, "0123456789..eE+-xXpPaAinfINF()");
        check_as_strtod(text);
        check_as_strtod("0x" + text);
        const auto bits = [&random] { return static_cast<unsigned long long>(random() >> random() % 64); };
        check_as_strtod(print("0x%llx.%llxp%d", bits(), bits(), static_cast<int>(random() % 1800) - 850));
    }
    for (int i = 0; i < 400; ++i) {
        // The exact decimal expansion of the midpoint of two adjacent doubles, and its neighbours in the last digit. A
        // long double with a 64-bit mantissa holds the midpoint; where long double is double, the check is merely
        // weaker.
        const double low = std::ldexp(uniform(random, 1, 2), static_cast<int>(random() % 120) - 60);
        const long double middle = (static_cast<long double>(low) + std::nextafter(low, infinity)) / 2;
        const std::string halfway = print("%.150Lf", middle);
        for (const std::string& end : {std::string(), std::string("1"), std::string(600, '0') + "1"})
            check_as_strtod(halfway + end);
        const std::string digits = drawn(random, 800);
        check_as_strtod(digits + "e-800");
        check_as_strtod("0." + digits);
        check_as_strtod("0." + std::string(300, '0') + digits);
        check_as_strtod(print("%.*e", 800, std::ldexp(random_double(random), -300)));
    }
}

#if LDBL_MANT_DIG >= 64
/// Not compared with strtod, because glibc 2.36 rounds 0x3aa1cc873a9f6.3p-1072 the wrong way. Converting an exact long
/// double rounds once.
TEST(hexadecimal_denormals) {
    Random random(8);
    for (int i = 0; i < 20000; ++i) {
        const unsigned long long mantissa = random() >> random() % 64;
        const int exponent = -1010 - static_cast<int>(random() % 140);
        const std::string text = print("0x%llxp%d", mantissa, exponent);
        double value = -1.0;
        CHECK(parse_real(text.data(), text.data() + text.size(), value) == text.data() + text.size());
        CHECK_EQ(value, static_cast<double>(std::ldexp(static_cast<long double>(mantissa), exponent)));
    }
}
#endif

TEST(real_ignores_the_locale) {
    const char* const german = std::setlocale(LC_ALL, "de_DE.UTF-8");
    const std::string text = "0.5 1234567890.123456789012345";
    double value = 0.0;
    parse_real(text.data(), text.data() + 3, value);
    CHECK_EQ(value, 0.5);
    parse_real(text.data() + 4, text.data() + text.size(), value);
    CHECK_EQ(value, 1234567890.123456789012345);
    if (german != nullptr) std::setlocale(LC_ALL, "C");
}

TEST(index_forms) {
    const auto parse = [](const std::string& text) {
        std::int64_t value = -77;
        const char* const end = parse_index(text.data(), text.data() + text.size(), value);
        return std::make_pair(value, end == nullptr ? -1 : static_cast<int>(end - text.data()));
    };
    CHECK(parse("12:1") == std::make_pair(std::int64_t{12}, 2));
    CHECK(parse("+7") == std::make_pair(std::int64_t{7}, 2));
    CHECK(parse("-7:") == std::make_pair(std::int64_t{-7}, 2));
    CHECK(parse("0000000000000000000000042") == std::make_pair(std::int64_t{42}, 25));
    CHECK(parse("2147483648") == std::make_pair(std::int64_t{2147483648}, 10));
    CHECK(parse("9223372036854775807").first == std::numeric_limits<std::int64_t>::max());
    CHECK(parse("9223372036854775808").first == std::numeric_limits<std::int64_t>::max());
    CHECK(parse("18446744073709551617").first == std::numeric_limits<std::int64_t>::max());
    CHECK(parse("-99999999999999999999").first == -std::numeric_limits<std::int64_t>::max());
    for (const char* text : {"", "+", "-", "x", ":1", " 1"}) CHECK_EQ(parse(text).second, -1);
}

// --- models ---

TEST(model_three_classes) {
    const LibsvmModel model = parse_libsvm_model(three_classes);
    CHECK_EQ(model.svm_type, SvmType::c_svc);
    CHECK_EQ(model.kernel_type, KernelType::rbf);
    CHECK_EQ(model.gamma.value_or(0), 0.25);
    CHECK(!model.degree && !model.coef0);
    CHECK_EQ(model.n_classes, 3);
    CHECK_EQ(model.n_sv, 4);
    CHECK_EQ(model.n_coef, 2);
    CHECK(model.rho == Doubles({0.5, -0.25, 1e-3}));
    CHECK(model.labels == Ints({5, -2, 7}));
    CHECK(model.n_sv_per_class == Longs({1, 2, 1}));
    CHECK(model.probabilities.empty());
    CHECK(model.coef == Doubles({0.5, -1, -0.5, 0.75, 1, 0.125, -1, -2}));
    CHECK(model.indptr == Longs({0, 2, 3, 3, 5}));
    CHECK(same(model.indices, Ints({1, 3, 2, 1, 7})));
    CHECK(same(model.values, Doubles({0.25, 1, -7.5, 1, 0.5})));
    CHECK_EQ(model.min_index, 1);
    CHECK_EQ(model.max_index, 7);
    CHECK(model.ends_in_line_break);
}

TEST(model_layout_is_free) {
    std::string crlf;
    for (const char c : three_classes) crlf += c == '\n' ? std::string("\r\n") : std::string(1, c);
    const std::string unterminated = three_classes.substr(0, three_classes.size() - 1);
    for (const std::string& text :
         {crlf, "\n \t" + three_classes, varied("gamma 0.25", "  gamma\t\n 0.25  "), varied("SV\n", "SV  \t\n"),
          varied("SV\n", "SV and anything else\n"), three_classes + "\n \n\t\r\n",
          varied("\n0.5 -1 1:0.25 3:1 \n", "\n \t0.5\t-1  1: 0.25 3:+1\n"), unterminated,
          three_classes.substr(0, three_classes.size() - 2),
          // keys in any order
          replaced(varied("gamma 0.25\n", ""), "SV\n", "gamma 0.25\nSV\n"),
          replaced(varied("svm_type c_svc\n", ""), "SV\n", "svm_type c_svc\nSV\n"),
          replaced(varied("total_sv 4\n", ""), "SV\n", "total_sv 4\nSV\n")}) {
        CHECK(means_the_same(text));
    }
    CHECK(!parse_libsvm_model(unterminated).ends_in_line_break);
}

TEST(models_cut_or_broken_at_every_byte) {
    const std::size_t last_row = three_classes.rfind('\n', three_classes.size() - 2) + 1;
    for (std::size_t n = 0; n < three_classes.size(); ++n) {
        const std::string cut = three_classes.substr(0, n);
        if (model_error(cut).empty()) {
            // A file cut inside the last row can look like a file without a final line break, which is legal. In that
            // case, everything else is complete, and the caller is told that the line break is missing.
            CHECK(n > last_row);
            CHECK(parse_libsvm_model(cut).n_sv == 4 && !parse_libsvm_model(cut).ends_in_line_break);
        }
        std::string with_nul = three_classes;
        with_nul[n] = '\0';
        // Only the rest of the SV line may contain arbitrary bytes; the last byte is a line break, which may be
        // missing.
        if (model_error(with_nul).empty()) CHECK(three_classes.compare(n - 2, 3, "SV\n") == 0);
    }
}

/// Errors caused by replacing one part of three_classes.
const struct {
    const char *from, *to, *message;
} broken_models[] = {
    {"-0.5 0.75 2:-7.5 \n", "", "total_sv is 4, but there are 3 rows of support vectors"},
    {"nr_sv 1 2 1", "nr_sv 1 2 2", "nr_sv sums to 5, but total_sv is 4"},
    {"1 0.125 \n", "\n", "support vector 3 has 0 coefficients instead of 2"},
    {"1 0.125 \n", "1 \n", "support vector 3 has 1 coefficients instead of 2"},
    {"svm_type c_svc\n", "", "no svm_type"},
    {"kernel_type rbf\n", "", "no kernel_type"},
    {"gamma 0.25\n", "", "no gamma, which kernel_type rbf needs"},
    {"rbf\ngamma 0.25", "sigmoid\ncoef0 0", "no gamma, which kernel_type sigmoid"},
    {"rbf", "sigmoid", "no coef0, which kernel_type sigmoid needs"},
    {"rbf", "polynomial\ncoef0 0", "no degree"},
    {"nr_class 3\n", "", "rho comes before nr_class"},
    {"total_sv 4\n", "", "no total_sv"},
    {"rho 0.5 -0.25 1e-3\n", "", "no rho"},
    {"label 5 -2 7\n", "", "no label, which svm_type c_svc needs"},
    {"nr_sv 1 2 1\n", "", "no nr_sv, which svm_type c_svc needs"},
    {"SV\n", "", "unknown key '0.5'"},
    {"SV\n", "gamma 0.25\nSV\n", "duplicate key 'gamma'"},
    {"gamma", "Gamma", "unknown key 'Gamma'"},
    {"c_svc", "C_SVC", "unknown svm_type 'C_SVC'"},
    {"rbf", "poly", "unknown kernel_type 'poly'"},
    {"SV\n", "scaling 2:0\nSV\n", "scaling of index 2 is 0"},
    {"SV\n", "scaling 2:inf\nSV\n", "the value of index 2 is 'inf', not finite"},
    {" 1e-3", "", "rho has 2 values instead of 3"},
    {"1e-3", "1e-3 4", "rho has 4 values instead of 3"},
    {"5 -2 7", "5 -2", "label has 2 values instead of 3"},
    {"5 -2 7", "5 -2 7 8", "label has 4 values instead of 3"},
    {"nr_sv 1 2 1", "nr_sv 1 3", "nr_sv has 2 values instead of 3"},
    {"SV\n", "probA 1 2\nSV\n", "probA has 2 values instead of 3"},
    {"SV\n", "probB\nSV\n", "probB has 0 values instead of 3"},
    {"SV\n", "prob_density_marks 1\nSV\n", "prob_density_marks has 1 values instead of 10"},
    {"gamma 0.25", "gamma -0.25", "gamma is negative"},
    {"gamma 0.25", "gamma nan", "gamma is 'nan', not a finite number"},
    {"gamma 0.25", "gamma 0.25x", "gamma is '0.25x', not a number"},
    {"gamma 0.25", "gamma 0,25", "gamma is '0,25', not a number"},
    {"-0.25 1e-3", "inf 1e-3", "rho is 'inf', not a finite number"},
    {"-0.25 1e-3", "1e999 1e-3", "rho is '1e999', not a finite"},
    {"-0.25 1e-3", "x 1e-3", "rho has 'x' for a number"},
    {"5 -2 7", "5 -2.5 7", "label has '-2.5' for a number"},
    {"5 -2 7", "5 cat 7",
     "label has 'cat' for a number; LIBSVM's labels are integers: write a number for each class in this line"},
    {"5 -2 7", "5 -2 5", "label 5 occurs twice"},
    {"5 -2 7", "5 -2 2147483648", "label is '2147483648', outside"},
    {"nr_sv 1 2 1", "nr_sv 5 -2 1", "nr_sv is '-2', outside 0 to"},
    {"nr_class 3", "nr_class 0", "nr_class is '0', outside 1 to"},
    {"nr_class 3", "nr_class three", "nr_class is 'three', not an integer"},
    {"total_sv 4", "total_sv -4", "total_sv is '-4', outside 0 to"},
    {"SV\n", "degree -1\nSV\n", "degree is '-1', outside"},
    {"SV\n", "coef0 inf\nSV\n", "coef0 is 'inf'"},
    {"c_svc", "nu_svr", "nr_class is 3 instead of 2, although svm_type is nu_svr"},
    {"nr_class 3\ntotal_sv 4\nrho 0.5 -0.25 1e-3\nlabel 5 -2 7\nnr_sv 1 2 1",
     "nr_class 1\ntotal_sv 4\nrho\nlabel 5\nnr_sv 4", "nr_class is 1, but total_sv is 4, not 0"},
    {"SV\n", "prob_density_marks 1 2 3 4 5 6 7 8 9 10\nSV\n",
     "prob_density_marks is for one_class only, but svm_type is c_svc"},
    {"1:0.25 3:1", "3:1 1:0.25", "support vector 1: index 1 follows index 3"},
    {"1:0.25 3:1", "3:1 3:1", "index 3 follows index 3"},
    {"1:0.25 3:1", "-1:1", "index -1 is negative"},
    {"1:0.25 3:1", "2147483647:1", "index '2147483647' exceeds 2147483646"},
    {"1:0.25 3:1", "99999999999999999999:1", "index '99999999999999999999' exceeds"},
    {"1:0.25 3:1", "1:nan", "the value of index 1 is 'nan', not finite"},
    {"1:0.25 3:1", "1:-inf", "the value of index 1 is '-inf', not finite"},
    {"1:0.25 3:1", "1:1e400", "the value of index 1 is '1e400', beyond the range"},
    {"1:0.25 3:1", "1:0.5x", "the value of index 1 is '0.5x', not a number"},
    {"1:0.25 3:1", "1:", "the value of index 1 is '', not a number"},
    {"1:0.25 3:1", "1", "'1' is not index:value"},
    {"1:0.25 3:1", "0.5:1", "'0.5:1' is not index:value"},
    {"0.5 -1 1", "nan -1 1", "coefficient 1 of 2 is 'nan', not a finite number"},
    {"0.5 -1 1", "0.5 1", "coefficient 2 of 2 is '1:0.25', not a finite number"},
    {"total_sv 4", "total_sv 1000000000000000000", "total_sv is '1000000000000000000', outside"},
    {"nr_class 3", "nr_class 2147483647", "rho has 3 values instead of 2305843005992468481"},
    {"nr_class 3", "nr_class 99999999999999999999", "nr_class is '99999999999999999999', outside"},
};

TEST(model_errors) {
    for (const auto& broken : broken_models) expect_part(model_error(varied(broken.from, broken.to)), broken.message);
    const std::pair<std::string, std::string> whole[] = {
        {"", "no SV line"},
        {"svm_type", "the text ends after svm_type"},
        {three_classes + "1 1 1:1\n1 1\n", "total_sv is 4, but there are 6 rows of support vectors"},
        {"\xEF\xBB\xBF" + three_classes, "not a model file: it begins with '???svm_type', LIBSVM's"},
        {replaced(regression, "total_sv 1", "total_sv 2147483647"), "total_sv is 2147483647, but there are 1 rows"},
        {std::string(1000, '\0'), "begins with '????????????????????????????????????????...'"},
        {varied("5 -2 7", "5 -2"), "7: "},
        {varied("SV\n", "gamma 0.25\nSV\n"), "9: "},
        {varied("1:0.25 3:1", "-1:1"), "10: "},
        {varied("1 0.125 \n", "1 \n"), "12: "},
        {three_classes + "1 1 1:1\n", "14: "}};
    for (const auto& [text, message] : whole) expect_part(model_error(text), message);
    for (const std::string key : {"rho", "label", "nr_sv", "probA", "probB"})
        expect_part(model_error("svm_type c_svc " + key + " 1"), key + " comes before nr_class");
}

// --- data ---

TEST(data_rows) {
    const LibsvmData data = parse_libsvm_data("+1 1:0.5 3:-2\n-1.5\n2e1\t0:1\t4: 0.5  \n");
    CHECK(same(data.labels, Doubles({1, -1.5, 20})));
    CHECK(same(data.indptr, Longs({0, 2, 2, 4})));
    CHECK(same(data.indices, Ints({1, 3, 0, 4})));
    CHECK(same(data.values, Doubles({0.5, -2, 1, 0.5})));
    CHECK_EQ(data.min_index, 0);
    CHECK_EQ(data.max_index, 4);
}

TEST(data_layout_is_free) {
    const LibsvmData data = parse_libsvm_data("1\r\n2 1:1\r\n  3\t \r\n4 2:1 \r\n5 3:1");
    CHECK(same(data.labels, Doubles({1, 2, 3, 4, 5})));
    CHECK(same(data.indptr, Longs({0, 0, 1, 1, 2, 3})));
    CHECK_EQ(parse_libsvm_data("7").labels.size(), std::size_t{1});
    CHECK_EQ(parse_libsvm_data("").labels.size(), std::size_t{0});
    CHECK_EQ(parse_libsvm_data("").max_index, -1);
    CHECK_EQ(parse_libsvm_data("1\n").min_index, -1);
}

TEST(data_number_forms) {
    const LibsvmData data = parse_libsvm_data("nan +1:inf 2:-INF 3:0x1p-2 4:NaN 5:1e-320\n-Infinity\n0x10\n");
    CHECK(std::isnan(data.labels[0]));
    CHECK_EQ(data.labels[1], -infinity);
    CHECK_EQ(data.labels[2], 16.0);
    CHECK(same(data.indices, Ints({1, 2, 3, 4, 5})));
    CHECK_EQ(data.values[0], infinity);
    CHECK_EQ(data.values[1], -infinity);
    CHECK_EQ(data.values[2], 0.25);
    CHECK(std::isnan(data.values[3]));
    CHECK_EQ(data.values[4], 1e-320);
}

TEST(data_long_line) {
    std::string text = "1";
    for (int i = 0; i < 200000; ++i) text += " " + std::to_string(i) + ":0.5";
    const LibsvmData data = parse_libsvm_data(text + "\n2 1:1\n", 4);
    CHECK(same(data.indptr, Longs({0, 200000, 200001})));
    CHECK_EQ(data.max_index, 199999);
}

TEST(data_errors) {
    const std::pair<std::string, std::string> broken[] = {
        {"1,2", "label '1,2' is not a number"},
        {"x 1:1", "label 'x' is not a number"},
        {"1:1", "label '1:1' is not a number"},
        {"1 1 :0.5", "'1' is not index:value"},
        {"1 1", "'1' is not index:value"},
        {"1 1:1 # note", "'#' is not index:value"},
        {"1 qid:3 1:1", "'qid:3' is not index:value"},
        {"1 1.5:1", "'1.5:1' is not index:value"},
        {"1 :1", "':1' is not index:value"},
        {"1 2:1 1:1", "index 1 follows index 2, but indices must ascend"},
        {"1 2:1 2:1", "index 2 follows index 2, but indices must ascend"},
        {"1 -1:1", "index -1 is negative"},
        {"1 2147483647:1", "index '2147483647' exceeds 2147483646"},
        {"1 4294967297:1", "index '4294967297' exceeds 2147483646"},
        {"1 1:", "the value of index 1 is '', not a number"},
        {"1 1:0.5x", "the value of index 1 is '0.5x', not a number"},
        {"1 1:0.5:2", "the value of index 1 is '0.5:2', not a number"},
        {"1 1:0.5,2:1", "the value of index 1 is '0.5,2:1', not a number"},
        {"1 1:1e999", "the value of index 1 is '1e999', beyond the range of a double"},
        {"1 1:0.5\v2:1", "the value of index 1 is '0.5', not a number"},
        {std::string("1 1:0.5\0", 8), "the value of index 1 is '0.5?', not a number"},
        {std::string("\0", 1), "label '?' is not a number"},
        {" \t", "the line is blank"}};
    for (const auto& [line, why] : broken) {
        for (const char* line_end : {"", "\n", "\r\n", "\n1 1:1\n"})
            expect_part(data_error("1 1:1\n" + line + line_end), "2: wrong input format: " + why);
    }
    expect_part(data_error("\n"), "1: wrong input format: the line is blank");
    expect_part(data_error("1\n\n"), "2: wrong input format: the line is blank");
    DataRowParser rows("1\nx\n", 100);  // the count starts at line 100
    DataRow row;
    CHECK(rows.next(row));
    CHECK_EQ(rows.line(), std::size_t{101});
    expect_part(error_of([&] { rows.next(row); }), "101: ");
}

TEST(first_bad_line_wins_on_all_threads) {
    std::string text;
    std::vector<std::size_t> line_starts;
    for (int i = 0; i < 40000; ++i) {
        line_starts.push_back(text.size());
        text += i % 3 == 0 ? "1 1:0.5\r\n" : "-1 2:0.25 17:1\n";
    }
    for (int n_threads = -1; n_threads <= 9; n_threads += n_threads < 3 ? 1 : 3) {
        CHECK_EQ(parse_libsvm_data(text, n_threads).labels.size(), std::size_t{40000});
        for (const std::size_t bad_line : {0u, 1u, 9999u, 20000u, 39998u}) {
            std::string bad = text;
            for (const std::size_t line : {bad_line, std::size_t{39999}}) bad[line_starts[line]] = 'x';
            CHECK_EQ(data_error(bad, n_threads).find(std::to_string(bad_line + 1) + ": "), std::size_t{0});
        }
    }
}

TEST(threads_and_streaming_agree) {
    Random random(7);
    std::string text;
    for (int i = 0; i < 30000; ++i) {
        text += std::to_string(static_cast<int>(random() % 5) - 2);
        std::uint64_t index = 0;
        for (std::uint64_t n = random() % 20; n > 0; --n)
            text += " " + std::to_string(index += 1 + random() % 9) + ":" + print("%.8g", uniform(random, -0.5, 0.5));
        text += '\n';
    }
    const LibsvmData one = parse_libsvm_data(text, 1);
    for (const int n_threads : {2, 3, 8}) {
        const LibsvmData many = parse_libsvm_data(text, n_threads);
        CHECK(one.labels == many.labels && one.indptr == many.indptr && one.indices == many.indices &&
              one.values == many.values && one.min_index == many.min_index && one.max_index == many.max_index);
    }
    DataRowParser rows(text);
    DataRow row;
    for (std::size_t i = 0; i < one.labels.size(); ++i) {
        CHECK_EQ(rows.line(), i + 1);
        CHECK(rows.next(row));
        const std::ptrdiff_t begin = one.indptr[i];
        CHECK_EQ(row.label, one.labels[i]);
        CHECK_EQ(static_cast<std::int64_t>(row.n_features), one.indptr[i + 1] - begin);
        CHECK(std::equal(one.indices.begin() + begin, one.indices.begin() + one.indptr[i + 1], row.indices.begin()));
        CHECK(std::equal(one.values.begin() + begin, one.values.begin() + one.indptr[i + 1], row.values.begin()));
    }
    CHECK(!rows.next(row));
}

TEST(split_covers_the_text) {
    for (const std::string text : {"", "\n", "a", "a\nb\nc\n", "a\nb\nc", "\n\n\n\n", "aaaaaaaaaaaaaaaaaaaa\nb\n"}) {
        for (std::size_t n_chunks = 1; n_chunks < 7; ++n_chunks) {
            const std::vector<std::string_view> chunks = split_at_lines(text, n_chunks);
            CHECK_EQ(chunks.size(), n_chunks);
            std::string joined;
            for (const std::string_view chunk : chunks) {
                CHECK(joined.empty() || chunk.empty() || joined.back() == '\n');
                joined += chunk;
            }
            CHECK_EQ(joined, text);
        }
    }
    CHECK(split_at_lines("a\n", 0).empty());
}

// --- what a file is ---

TEST(every_beginning_of_a_stranger_is_safe_to_look_at) {
    using namespace std::string_view_literals;
    for (const std::string_view whole :
         {"\x08\x0a\x12\x08skl2onnx"sv, "PK\x03\x04\x14\0\0\0schema.json"sv, "\x80\x04\x95\x10\0\0\0"sv,
          "x\x9c\x01\x02"sv, "<?xml version=\"1.0\"?><opencv_storage>"sv, "%YAML:1.0\n--- opencv"sv,
          "\x28\xb5\x2f\xfd\0"sv, "-1 1:2\n"sv, "tree\nversion=v3\n"sv, "II*\0\x08"sv}) {
        for (std::size_t n = 0; n <= whole.size(); ++n) {
            const Exact<char> copy = exact(std::string(whole.substr(0, n)));
            CHECK(!kind_of({copy.data.get(), n}).name.empty() || n < whole.size());
        }
    }
}

// --- files ---

TEST(mapped_file_reads_bytes) {
    const std::filesystem::path path = std::filesystem::temp_directory_path() / "approxsvm_test_text.tmp";
    for (const std::string& bytes : {std::string(), std::string("a\0\r\n", 4), std::string(100000, 'x')}) {
        for (const char* const mark : {"", "\xEF\xBB\xBF"}) {
            std::ofstream(path, std::ios::binary) << mark << bytes;
            CHECK_EQ(MappedFile(path.u8string()).bytes(), bytes);
        }
    }
    std::filesystem::remove(path);
    for (const std::string& name : {path.u8string(), path.parent_path().u8string()})
        expect_part(check::thrown_by([&] { MappedFile{name}; }), name);
#if defined(__linux__)
    // This file claims to be empty but is not.
    CHECK(MappedFile("/proc/self/status").bytes().size() > 0);
#endif
}

}  // namespace text
