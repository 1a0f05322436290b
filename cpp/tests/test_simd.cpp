#include "parts.hpp"

// Compares the SIMD functions with the same functions in higher precision. Compiled once per target.

namespace simd {

using namespace approxsvm;
using check::expect;

namespace {

template <class Real>
using Register = typename RegisterOf<Real>::type;
constexpr std::size_t together = 2;  // registers
/// 2 pi to 80 bits; if long double is float64, references are no more precise than the results that they judge.
constexpr long double two_pi = 6.283185307179586476925286766559L;
constexpr long double slack = std::numeric_limits<long double>::digits == 53 ? 1.5L : 1.0L;

template <class Real>
struct Function {
    const char* name;
    void (*apply)(Register<Real> (&)[together]);
    long double (*truth)(Real);
    long double (*allowed)(long double truth);  // maximum error
};

const Function<float> exp32{
    "float32 exp", [](Register<float> (&x)[together]) { exp_nonpositive(x); },
    [](float x) -> long double { return x > -0x1p-26f ? 1.0 + double{x} : std::exp(double{x}); },
    [](long double y) { return std::min(std::ldexp(1.5L, std::ilogb(y) - 23), 0x1p-23L * y); }};
const Function<double> exp64{"float64 exp", [](Register<double> (&x)[together]) { exp_nonpositive(x); },
                             [](double x) { return std::exp(static_cast<long double>(x)); },
                             [](long double y) { return slack * std::ldexp(1.5L, std::ilogb(y) - 52); }};
const Function<double> tanh64{"float64 tanh", [](Register<double> (&x)[together]) { hyperbolic_tangent(x); },
                              [](double x) { return std::tanh(static_cast<long double>(x)); },
                              [](long double) { return slack * tanh_error_units * 0x1p-53L; }};
/// Whole turns are subtracted first, exactly, so that they do not reduce the reference's precision.
template <class Real>
const Function<Real> cosine{
    sizeof(Real) == 4 ? "float32 cosines" : "float64 cosines",
    [](Register<Real> (&x)[together]) { cosine_of_turns(x); },
    [](Real x) {
        const long double turns = x;
        return std::cos(two_pi * (turns - std::nearbyint(turns)));
    },
    [](long double) { return slack * cosine_error_units * std::numeric_limits<Real>::epsilon() / 2; }};

template <class Real>
std::vector<Real> applied(const Function<Real>& function, std::vector<Real> x) {
    constexpr std::size_t width = static_cast<std::size_t>(lanes_of<Real>);
    const std::size_t n = x.size();
    while (x.size() % (together * width) != 0) x.push_back(0);
    for (std::size_t first = 0; first < x.size(); first += together * width) {
        Register<Real> registers[together];
        for (std::size_t i = 0; i < together; ++i) registers[i] = load(&x[first + i * width]);
        function.apply(registers);
        for (std::size_t i = 0; i < together; ++i) store(&x[first + i * width], registers[i]);
    }
    x.resize(n);
    return x;
}

template <class Real>
void judge(const Function<Real>& function, const std::vector<Real>& arguments) {
    const std::vector<Real> found = applied(function, arguments);
    long double worst = 0;
    Real at = 0;
    for (std::size_t k = 0; k < found.size(); ++k) {
        const long double truth = function.truth(arguments[k]), allowed = function.allowed(truth);
        const long double ratio = std::fabs(found[k] - truth) / allowed;
        if (!(ratio <= worst)) worst = ratio, at = arguments[k];
    }
    EXPECT(worst <= 1, std::string(function.name) + ": error / bound " + check::show(worst) + " at " + check::show(at));
}

/// The given numbers, each with its neighbours on both sides.
template <class Real>
std::vector<Real> neighbours(const std::vector<Real>& marks, int n, Real low, Real high) {
    std::vector<Real> found;
    for (const Real mark : marks) {
        Real up = mark, down = mark;
        for (int k = 0; k < n; ++k) {
            if (up >= low && up <= high) found.push_back(up);
            if (down >= low && down <= high) found.push_back(down);
            up = std::nextafter(up, std::numeric_limits<Real>::infinity());
            down = std::nextafter(down, -std::numeric_limits<Real>::infinity());
        }
    }
    return found;
}

template <class Real>
void check_ends_of_exp(const Function<Real>& function, Real min_argument) {
    using Limits = std::numeric_limits<Real>;
    const Real smallest = applied(function, {min_argument})[0];
    EXPECT(smallest >= Limits::min(), "the smallest exp is not normal");
    for (const Real y : applied(function, {min_argument * Real(1.0001), Real(-1e4), -Limits::max(), -Limits::infinity(),
                                           Limits::quiet_NaN(), -Limits::quiet_NaN()})) {
        CHECK_EQ(y, smallest);
    }
    for (const Real y : applied(function, {Real{0}, -Real{0}, -Limits::min(), -Limits::denorm_min()}))
        CHECK_EQ(y, Real{1});
}

template <class Real>
void check_cosines(int n, double max_turns) {
    Random random(1);
    std::vector<Real> marks = {0, Real(0.125), Real(0.25), Real(0.375), Real(0.5)}, far, negative;
    for (int k = 4; k < 140; ++k) marks.push_back(std::ldexp(Real(1), -k));
    std::vector<Real> half_a_turn = neighbours(marks, 200, Real(-1), Real(1));
    for (int k = 0; k < n; ++k) half_a_turn.push_back(static_cast<Real>(0.5L * k / n));
    judge(cosine<Real>, half_a_turn);
    for (const Real turn : half_a_turn) negative.push_back(-turn);
    CHECK(applied(cosine<Real>, half_a_turn) == applied(cosine<Real>, negative));  // an even function
    for (const double turn : {max_turns, -max_turns, max_turns - 0.5}) far.push_back(static_cast<Real>(turn));
    for (int k = 0; k < n; ++k) {
        const double turn = std::ldexp(uniform(random, -1, 1), static_cast<int>(random() % 64));
        far.push_back(static_cast<Real>(std::fabs(turn) > max_turns ? std::fmod(turn, max_turns) : turn));
    }
    judge(cosine<Real>, far);
    const std::vector<Real> simple = {0,           Real(0.25), Real(0.5), Real(0.75),      1,
                                      Real(-0.25), Real(-0.5), Real(1e6), Real(1000000.5), Real(1000000.25)};
    const Real expected[] = {1, 0, -1, 0, 1, 0, -1, 1, -1, 0};
    const std::vector<Real> found = applied(cosine<Real>, simple);
    for (std::size_t k = 0; k < simple.size(); ++k)
        CHECK(std::fabs(found[k] - expected[k]) <= std::numeric_limits<Real>::epsilon());
    CHECK_EQ(found[1], Real{0});
}

}  // namespace

/// Tests every n-th number in the range, where n is APPROXSVM_EXHAUSTIVE, by default 397; 1 tests all numbers.
TEST(float32_exp) {
    const char* const wish = std::getenv("APPROXSVM_EXHAUSTIVE");
    const int step = wish == nullptr || std::atoi(wish) <= 0 ? 397 : std::atoi(wish);
    std::uint32_t last;
    std::memcpy(&last, &exp_min_argument, sizeof last);
    std::vector<float> arguments;
    for (std::uint64_t bits = 0x80000000u; bits <= last; bits += static_cast<std::uint64_t>(step)) {
        const auto narrow = static_cast<std::uint32_t>(bits);
        std::memcpy(&arguments.emplace_back(), &narrow, sizeof narrow);
        if (arguments.size() < 4096 && bits + static_cast<std::uint64_t>(step) <= last) continue;
        judge(exp32, arguments);
        arguments.clear();
    }
    // In the range reduction, the integer changes at odd multiples of ln 2 / 2; the remainder is 0 at even ones.
    std::vector<float> turns = {0.0f, -FLT_MIN, -FLT_TRUE_MIN, -0x1p-25f, -1.0f, exp_min_argument};
    for (int k = 1; k * 0.34657359 < 87.33; ++k) turns.push_back(static_cast<float>(-k * 0.34657359));
    judge(exp32, neighbours(turns, 1000, exp_min_argument, 0.0f));
    check_ends_of_exp(exp32, exp_min_argument);
}

TEST(float64_exp) {
    Random random(3);
    std::vector<double> arguments;
    for (int k = 0; k < 150'000; ++k) {
        arguments.push_back(uniform(random, exp64_min_argument, 0.0));
        arguments.push_back(uniform(random, -2.0, 0.0));
        arguments.push_back(-std::ldexp(uniform(random, 0.0, 1.0), -static_cast<int>(random() % 1075)));
        const double turn = -(static_cast<double>(random() % 1022) + 0.5) * 0.6931471805599453;
        arguments.push_back(std::max(turn + uniform(random, -1e-9, 1e-9), exp64_min_argument));
    }
    judge(exp64, arguments);
    check_ends_of_exp(exp64, exp64_min_argument);
}

TEST(float64_tanh) {
    Random random(4);
    constexpr double infinity = std::numeric_limits<double>::infinity();
    std::vector<double> arguments = {0.0, -0.0, infinity, -infinity, 1e300, -1e300, DBL_TRUE_MIN};
    for (int k = 0; k < 40'000; ++k) {
        arguments.push_back(uniform(random, -3.0, 3.0));
        arguments.push_back(uniform(random, -400.0, 400.0));
        arguments.push_back(std::copysign(std::exp2(uniform(random, -1074.0, 1023.0)), arguments.back()));
    }
    judge(tanh64, arguments);
    for (const double y : applied(tanh64, arguments)) CHECK(std::fabs(y) <= 1.0);
    CHECK(std::isnan(applied(tanh64, {std::nan("")})[0]));
}

TEST(cosines) {
    check_cosines<float>(200'000, max_turns32);
    check_cosines<double>(100'000, max_turns64);
}

TEST(registers_of_float64) {
    double x[lanes64], y[lanes64], result[lanes64];
    float narrow[lanes];
    for (int i = 0; i < lanes64; ++i) x[i] = i - 1.5, y[i] = 0.25 * i;
    for (int i = 0; i < lanes; ++i) narrow[i] = 0.1f * static_cast<float>(i + 1);
    const auto check_lanes = [&](f64v actual, auto expected) {
        store(result, actual);
        for (int i = 0; i < lanes64; ++i) CHECK_EQ(result[i], expected(i));
    };
    check_lanes(zero64(), [](int) { return 0.0; });
    check_lanes(set1(0.1), [](int) { return 0.1; });
    check_lanes(add(load(x), load(y)), [&](int i) { return x[i] + y[i]; });
    check_lanes(div(load(x), set1(0.75)), [&](int i) { return x[i] / 0.75; });
    check_lanes(sub(load(x), load(y)), [&](int i) { return x[i] - y[i]; });
    check_lanes(mul(load(x), load(y)), [&](int i) { return x[i] * y[i]; });
    check_lanes(fmadd(load(x), load(y), load(x)), [&](int i) { return x[i] * y[i] + x[i]; });
    check_lanes(max_or(load(x), set1(0.0)), [&](int i) { return x[i] > 0 ? x[i] : 0.0; });
    check_lanes(min_or_nan(load(x), set1(0.0)), [&](int i) { return x[i] > 0 ? 0.0 : x[i]; });
    check_lanes(max_or(set1(std::nan("")), set1(-3.0)), [](int) { return -3.0; });
    check_lanes(widen_low(load(narrow)), [&](int i) { return static_cast<double>(narrow[i]); });
    check_lanes(widen_high(load(narrow)), [&](int i) { return static_cast<double>(narrow[lanes64 + i]); });
    for (const int n : {-1022, -1, 0, 1, 1023}) {
        check_lanes(exp2_of_shifted(set1(6755399441055744.0 + n)), [&](int) { return std::ldexp(1.0, n); });
    }
    store(result, min_or_nan(set1(std::nan("")), set1(0.0)));
    for (const double value : result) CHECK(std::isnan(value));
    store(narrow, min_or_nan(set1(std::nanf("")), set1(0.0f)));
    for (const float value : narrow) CHECK(std::isnan(value));
    store(narrow, min_or_nan(set1(2.0f), set1(-1.0f)));
    for (const float value : narrow) CHECK_EQ(value, -1.0f);
}

}  // namespace simd
