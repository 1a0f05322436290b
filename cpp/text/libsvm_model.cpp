#include "libsvm_model.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "feature_row.hpp"
#include "number.hpp"

namespace approxsvm::text {
namespace {

constexpr std::array<std::string_view, 5> svm_type_names = {"c_svc", "nu_svc", "one_class", "epsilon_svr", "nu_svr"};
constexpr std::array<std::string_view, 5> kernel_type_names = {"linear", "polynomial", "rbf", "sigmoid", "precomputed"};

enum class Key {
    svm_type,
    kernel_type,
    degree,
    gamma,
    coef0,
    nr_class,
    total_sv,
    rho,
    label,
    prob_a,
    prob_b,
    prob_density_marks,
    nr_sv,
    scaling,  // a key used by the Point Cloud Library
    support_vectors
};
constexpr std::size_t n_keys = 15;
constexpr std::array<std::string_view, n_keys> key_names = {
    "svm_type", "kernel_type",        "degree", "gamma",   "coef0", "nr_class", "total_sv", "rho", "label", "probA",
    "probB",    "prob_density_marks", "nr_sv",  "scaling", "SV"};

constexpr std::int64_t n_density_marks = 10;
// LIBSVM stores counts and labels as int. With the same limits, sums and products of counts fit in int64.
constexpr std::int64_t min_int = std::numeric_limits<std::int32_t>::min();
constexpr std::int64_t max_int = std::numeric_limits<std::int32_t>::max();

std::string key_name(Key key) {
    return std::string(key_names[static_cast<std::size_t>(key)]);
}

/// Returns true if c is white space in the C locale, which separates the header's tokens.
bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

std::string quote(std::string_view token) {
    return quote_token(token.data(), token.data() + token.size());
}

bool parse_whole(std::string_view token, double& value) {
    const char* const last = token.data() + token.size();
    return parse_real(token.data(), last, value) == last && !token.empty();
}

bool parse_whole(std::string_view token, std::int64_t& value) {
    const char* const last = token.data() + token.size();
    return parse_index(token.data(), last, value) == last && !token.empty();
}

/// A text and the current reading position. Lines are counted only if an error is reported.
class Reader {
  public:
    explicit Reader(std::string_view text) : first_(text.data()), last_(first_ + text.size()), next_(first_) {}

    const char* next() const { return next_; }
    const char* last() const { return last_; }

    [[noreturn]] void fail(const char* at, const std::string& message) const {
        throw TextError(1 + static_cast<std::size_t>(std::count(first_, at, '\n')), message);
    }

    /// Returns the next token without consuming it; empty at the end of the text.
    std::string_view peek() {
        next_ = std::find_if_not(next_, last_, is_space);
        const char* const end = std::find_if(next_, last_, is_space);
        return {next_, static_cast<std::size_t>(end - next_)};
    }

    std::string_view take() {
        const std::string_view token = peek();
        next_ += token.size();
        return token;
    }

    /// Consumes the rest of the line and returns it without the line break.
    std::string_view take_line() {
        const char* const first = next_;
        const char* const line_break = std::find(first, last_, '\n');
        next_ = line_break == last_ ? last_ : line_break + 1;
        const bool has_return = line_break != first && line_break[-1] == '\r';
        return {first, static_cast<std::size_t>(line_break - first) - (has_return ? 1 : 0)};
    }

  private:
    const char* first_;
    const char* last_;
    const char* next_;
};

/// Parses the header: all keys up to and including the SV line.
class HeaderParser {
  public:
    HeaderParser(Reader& reader, LibsvmModel& model) : reader_(reader), model_(model) {}

    void parse() {
        while (take_key() != Key::support_vectors) parse_value();
        reader_.take_line();
        check_complete();
        check_classes();
    }

  private:
    [[noreturn]] void fail(const std::string& message) const { reader_.fail(key_at_, message); }

    bool has(Key key) const { return key_seen_[static_cast<std::size_t>(key)]; }

    Key take_key() {
        std::string_view token = reader_.peek();
        for (; token.substr(0, 1) == "#"; token = reader_.peek()) reader_.take_line();
        key_at_ = reader_.next();
        reader_.take();
        if (token.empty()) fail("the text ends inside the header: there is no SV line");
        const auto found = std::find(key_names.begin(), key_names.end(), token);
        if (found == key_names.end()) {
            const bool is_first = std::find(key_seen_.begin(), key_seen_.end(), true) == key_seen_.end();
            if (is_first) fail("not a model file: it begins with " + quote(token) + ", LIBSVM's models with svm_type");
            fail("unknown key " + quote(token));
        }
        const std::size_t i = static_cast<std::size_t>(found - key_names.begin());
        if (key_seen_[i]) fail("duplicate key " + quote(token));
        key_seen_[i] = true;
        key_ = static_cast<Key>(i);
        return key_;
    }

    void parse_value() {
        switch (key_) {
            case Key::svm_type:
                model_.svm_type = take_name<SvmType>(svm_type_names);
                break;
            case Key::kernel_type:
                model_.kernel_type = take_name<KernelType>(kernel_type_names);
                break;
            case Key::degree:
                model_.degree = static_cast<std::int32_t>(take_integer(0));
                break;
            case Key::gamma:
                model_.gamma = take_gamma();
                break;
            case Key::coef0:
                model_.coef0 = take_real();
                break;
            case Key::nr_class:
                model_.n_classes = static_cast<std::int32_t>(take_integer(1));
                model_.n_coef = std::max(1, model_.n_classes - 1);
                break;
            case Key::total_sv:
                model_.n_sv = take_integer(0);
                break;
            case Key::rho:
                take_list(n_pairs(), model_.rho);
                break;
            case Key::label:
                take_labels();
                break;
            case Key::prob_a:
            case Key::prob_b:
                take_list(n_pairs(), model_.probabilities[key_name(key_)]);
                break;
            case Key::prob_density_marks:
                take_list(n_density_marks, model_.probabilities[key_name(key_)]);
                break;
            case Key::nr_sv:
                take_list(n_classes(), model_.n_sv_per_class, 0);
                break;
            case Key::scaling:
                take_scaling();
                break;
            case Key::support_vectors:
                break;
        }
    }

    template <class Enum, std::size_t n_names>
    Enum take_name(const std::array<std::string_view, n_names>& names) {
        const std::string_view token = take_value();
        const auto found = std::find(names.begin(), names.end(), token);
        if (found == names.end()) fail("unknown " + key_name(key_) + " " + quote(token));
        return static_cast<Enum>(found - names.begin());
    }

    std::string_view take_value() {
        const std::string_view token = reader_.take();
        if (token.empty()) fail("the text ends after " + key_name(key_));
        return token;
    }

    std::int64_t take_integer(std::int64_t lowest) {
        const std::string_view token = take_value();
        std::int64_t value = 0;
        if (!parse_whole(token, value)) fail(key_name(key_) + " is " + quote(token) + ", not an integer");
        check_value(token, value, lowest);
        return value;
    }

    double take_real() {
        const std::string_view token = take_value();
        double value = 0.0;
        if (!parse_whole(token, value)) fail(key_name(key_) + " is " + quote(token) + ", not a number");
        check_value(token, value);
        return value;
    }

    double take_gamma() {
        const double gamma = take_real();
        if (gamma < 0.0) fail("gamma is negative");
        return gamma;
    }

    void take_labels() {
        std::vector<std::int64_t> labels;
        take_list(n_classes(), labels, min_int);
        model_.labels.reserve(labels.size());
        for (const std::int64_t label : labels) model_.labels.push_back(static_cast<std::int32_t>(label));
        std::sort(labels.begin(), labels.end());
        const auto twin = std::adjacent_find(labels.begin(), labels.end());
        if (twin != labels.end() && is_classification()) fail("label " + std::to_string(*twin) + " occurs twice");
    }

    /// Consumes all numbers up to the next key, so that an overlong list is reported as such. `limits` are passed to
    /// check_value.
    template <class Value, class... Limits>
    void take_list(std::int64_t n_expected, std::vector<Value>& values, Limits... limits) {
        for (;;) {
            const std::string_view token = reader_.peek();
            Value value{};
            if (!parse_whole(token, value)) {
                const bool is_key = std::find(key_names.begin(), key_names.end(), token) != key_names.end();
                if (token.empty() || is_key || n_values(values) == n_expected) break;
                double real;
                const bool is_name = parse_real(token.data(), token.data() + token.size(), real) == nullptr;
                const char* const remedy = "; LIBSVM's labels are integers: write a number for each class in this line";
                reader_.fail(reader_.next(), key_name(key_) + " has " + quote(token) + " for a number" +
                                                 (key_ == Key::label && is_name ? remedy : ""));
            }
            check_value(token, value, limits...);
            values.push_back(value);
            reader_.take();
        }
        if (n_values(values) != n_expected) {
            fail(key_name(key_) + " has " + std::to_string(values.size()) + " values instead of " +
                 std::to_string(n_expected));
        }
    }

    /// Reads "index:value ..." up to the end of the line. No value may be 0, because features are divided by these
    /// values.
    void take_scaling() {
        const std::string_view line = reader_.take_line();
        const char* const last = line.data() + line.size();
        const std::size_t n_colons = count_line_breaks_and_colons(line).n_colons;
        model_.scaled_indices.resize(n_colons);
        model_.scales.resize(n_colons);
        const FeatureParse parse = parse_features<NonFinite::reject>(
            line.data(), last, reader_.last(), model_.scaled_indices.data(), model_.scales.data());
        if (parse.fault != FeatureFault::none) reader_.fail(parse.at, "scaling: " + describe(parse, last));
        for (std::size_t i = 0; i < n_colons; ++i) {
            if (model_.scales[i] == 0.0) fail("scaling of index " + std::to_string(model_.scaled_indices[i]) + " is 0");
        }
        if (n_colons > 0) model_.include_indices(model_.scaled_indices.front(), model_.scaled_indices.back());
    }

    template <class Value>
    static std::int64_t n_values(const std::vector<Value>& values) {
        return static_cast<std::int64_t>(values.size());
    }

    void check_value(std::string_view token, double value) const {
        if (!std::isfinite(value)) {
            reader_.fail(token.data(), key_name(key_) + " is " + quote(token) + ", not a finite number");
        }
    }

    void check_value(std::string_view token, std::int64_t value, std::int64_t lowest) const {
        if (value < lowest || value > max_int) {
            reader_.fail(token.data(), key_name(key_) + " is " + quote(token) + ", outside " + std::to_string(lowest) +
                                           " to " + std::to_string(max_int));
        }
    }

    std::int64_t n_classes() const {
        if (!has(Key::nr_class)) fail(key_name(key_) + " comes before nr_class");
        return model_.n_classes;
    }

    std::int64_t n_pairs() const { return n_classes() * (n_classes() - 1) / 2; }

    void require(Key key, const std::string& reason = "") const {
        if (!has(key)) fail("the header has no " + key_name(key) + reason);
    }

    void check_complete() const {
        for (const Key key : {Key::svm_type, Key::kernel_type, Key::nr_class, Key::total_sv, Key::rho}) {
            require(key);
        }
        const KernelType kernel = model_.kernel_type;
        const std::string kernel_needs = ", which kernel_type " + std::string(name_of(kernel)) + " needs";
        const bool is_polynomial = kernel == KernelType::polynomial;
        const bool is_dot_product_kernel = is_polynomial || kernel == KernelType::sigmoid;
        if (is_polynomial) require(Key::degree, kernel_needs);
        if (is_dot_product_kernel || kernel == KernelType::rbf) require(Key::gamma, kernel_needs);
        if (is_dot_product_kernel) require(Key::coef0, kernel_needs);
        if (is_classification()) {
            const std::string svm_needs = ", which svm_type " + std::string(name_of(model_.svm_type)) + " needs";
            require(Key::label, svm_needs);
            require(Key::nr_sv, svm_needs);
        }
        model_.has_probabilities = is_classification()                     ? has(Key::prob_a) && has(Key::prob_b)
                                   : model_.svm_type == SvmType::one_class ? has(Key::prob_density_marks)
                                                                           : has(Key::prob_a);
    }

    void check_classes() {
        if (!is_classification()) {  // R's e1071 writes zeros for other tasks
            model_.labels.clear();
            model_.n_sv_per_class.clear();
        }
        const std::string total = std::to_string(model_.n_sv);
        if (!is_classification() && model_.n_classes != 2) {
            fail("nr_class is " + std::to_string(model_.n_classes) + " instead of 2, although svm_type is " +
                 std::string(name_of(model_.svm_type)));
        }
        if (model_.n_classes == 1 && model_.n_sv != 0) fail("nr_class is 1, but total_sv is " + total + ", not 0");
        if (has(Key::prob_density_marks) && model_.svm_type != SvmType::one_class) {
            fail("prob_density_marks is for one_class only, but svm_type is " + std::string(name_of(model_.svm_type)));
        }
        const std::vector<std::int64_t>& counts = model_.n_sv_per_class;
        const std::int64_t sum = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
        if (is_classification() && sum != model_.n_sv) {
            fail("nr_sv sums to " + std::to_string(sum) + ", but total_sv is " + total);
        }
    }

    bool is_classification() const { return model_.svm_type == SvmType::c_svc || model_.svm_type == SvmType::nu_svc; }

    Reader& reader_;
    LibsvmModel& model_;
    std::array<bool, n_keys> key_seen_{};
    Key key_ = Key::support_vectors;
    const char* key_at_ = nullptr;
};

/// Parses the rows below the SV line: n_coef coefficients, then index:value pairs.
class SupportVectorParser {
  public:
    SupportVectorParser(Reader& reader, LibsvmModel& model)
        : reader_(reader), model_(model), last_(find_content_end(reader)) {}

    void parse() {
        const char* const first = reader_.next();
        const TextCounts counts = count_line_breaks_and_colons({first, static_cast<std::size_t>(last_ - first)});
        check_row_count(first == last_ ? 0 : static_cast<std::int64_t>(counts.n_line_breaks) + 1);
        // At this point, total_sv is the number of existing lines. A coefficient takes two bytes, so the size of the
        // text limits the declared number n_sv * n_coef.
        const std::int64_t max_coefs = (last_ - first) / 2 + 1;
        model_.coef.reserve(static_cast<std::size_t>(std::min(model_.n_sv * model_.n_coef, max_coefs)));
        model_.indptr.reserve(static_cast<std::size_t>(model_.n_sv) + 1);
        model_.indptr.push_back(0);
        model_.indices.resize(counts.n_colons);
        model_.values.resize(counts.n_colons);

        const char* p = first;
        for (std::int64_t row = 0; row < model_.n_sv; ++row) {
            const char* const line_break = std::find(p, last_, '\n');
            const char* const line_last = line_break != p && line_break[-1] == '\r' ? line_break - 1 : line_break;
            parse_pairs(parse_coefficients(p, line_last), line_last);
            p = line_break == last_ ? last_ : line_break + 1;
        }
    }

  private:
    /// Finds the end of the rows, excluding blank lines at the end of the text.
    static const char* find_content_end(const Reader& reader) {
        const char* last = reader.last();
        while (last != reader.next() && is_space(last[-1])) --last;
        return last;
    }

    void check_row_count(std::int64_t n_rows) const {
        if (n_rows == model_.n_sv) return;
        const std::string_view break_and_rows(reader_.next() - 1, static_cast<std::size_t>(last_ - reader_.next()) + 1);
        const std::size_t comment = break_and_rows.find("\n#");
        if (comment != std::string_view::npos) {
            const char* const p = break_and_rows.data() + comment + 1;
            reader_.fail(p, quote_token(p, last_) + " is no support vector");
        }
        const char* at = last_;
        if (n_rows > model_.n_sv) {
            at = reader_.next();
            for (std::int64_t row = 0; row < model_.n_sv; ++row) at = std::find(at, last_, '\n') + 1;
        }
        reader_.fail(at, "total_sv is " + std::to_string(model_.n_sv) + ", but there are " + std::to_string(n_rows) +
                             " rows of support vectors");
    }

    std::string row_name() const { return "support vector " + std::to_string(model_.indptr.size()); }

    const char* parse_coefficients(const char* p, const char* line_last) {
        for (std::int32_t i = 0; i < model_.n_coef; ++i) {
            p = skip_blanks(p, line_last);
            if (p == line_last) {
                reader_.fail(p, row_name() + " has " + std::to_string(i) + " coefficients instead of " +
                                    std::to_string(model_.n_coef));
            }
            double value = 0.0;
            const char* const end = parse_real(p, line_last, value);
            if (end == nullptr || (end != line_last && !is_blank(*end)) || !std::isfinite(value)) {
                reader_.fail(p, row_name() + ": coefficient " + std::to_string(i + 1) + " of " +
                                    std::to_string(model_.n_coef) + " is " + quote_token(p, line_last) +
                                    ", not a finite number");
            }
            model_.coef.push_back(value);
            p = end;
        }
        return p;
    }

    void parse_pairs(const char* p, const char* line_last) {
        const std::size_t begin = static_cast<std::size_t>(model_.indptr.back());
        const FeatureParse parse = parse_features<NonFinite::reject>(
            p, line_last, reader_.last(), model_.indices.data() + begin, model_.values.data() + begin);
        if (parse.fault != FeatureFault::none) {
            reader_.fail(parse.at, row_name() + ": " + describe(parse, line_last));
        }
        const std::size_t end = begin + parse.n_features;
        if (end != begin) model_.include_indices(model_.indices[begin], model_.indices[end - 1]);
        model_.indptr.push_back(static_cast<std::int64_t>(end));
    }

    Reader& reader_;
    LibsvmModel& model_;
    const char* last_;
};

}  // namespace

std::string_view name_of(SvmType type) {
    return svm_type_names[static_cast<std::size_t>(type)];
}

std::string_view name_of(KernelType type) {
    return kernel_type_names[static_cast<std::size_t>(type)];
}

LibsvmModel parse_libsvm_model(std::string_view text) {
    LibsvmModel model;
    Reader reader(text);
    HeaderParser(reader, model).parse();
    SupportVectorParser(reader, model).parse();
    model.ends_in_line_break = !text.empty() && text.back() == '\n';
    return model;
}

}  // namespace approxsvm::text
