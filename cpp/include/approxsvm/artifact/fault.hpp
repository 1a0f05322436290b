// Faults found by artifact readers: the invalid number, its section, and the constraint that it violates. A name is
// represented by its number in artifact/schema.inc, so that programs without text output contain no strings; the
// messages are written by dispatch/fault_text.hpp.
#ifndef APPROXSVM_ARTIFACT_FAULT_HPP
#define APPROXSVM_ARTIFACT_FAULT_HPP

#include <cmath>
#include <cstring>
#include <limits>

#include "../model_view.hpp"
#include "../simd/simd.hpp"
#include "../status.hpp"

namespace approxsvm {
inline namespace APPROXSVM_VERSION_NAMESPACE {

// A number as stored in an artifact; integers may exceed 2^53.
class StoredNumber {
  public:
    constexpr StoredNumber() : real_(0.0), is_whole_(false) {}
    explicit constexpr StoredNumber(double x) : real_(x), is_whole_(false) {}
    explicit constexpr StoredNumber(std::uint64_t x) : whole_(x), is_whole_(true) {}

    constexpr bool is_whole() const { return is_whole_; }
    constexpr double real() const { return is_whole_ ? static_cast<double>(whole_) : real_; }
    constexpr std::uint64_t whole() const { return is_whole_ ? whole_ : 0; }

    // Returns the bits of an integer or real number, which fit into one register.
    APPROXSVM_INLINE std::uint64_t bits() const {
        std::uint64_t bits = whole();
        if (!is_whole_) std::memcpy(&bits, &real_, sizeof bits);
        return bits;
    }
    static StoredNumber of_bits(std::uint64_t bits, bool is_whole) {
        if (is_whole) return StoredNumber(bits);
        double x;
        std::memcpy(&x, &bits, sizeof x);
        return StoredNumber(x);
    }

  private:
    union {
        double real_;
        std::uint64_t whole_;
    };
    bool is_whole_;
};

// The constraint, and its parameters `low` and `high` in an Expected.
enum class Rule : std::uint8_t {
    equal,            // the number `low`
    not_equal,        // not the number `low`
    from_to,          // a number from `low` to `high`
    from_below,       // a number of at least `low`, below `high`
    at_least,         // a number of at least `low`
    above,            // a number above `low`
    finite,           // any finite number
    finite_at_least,  // a finite number of at least `low`
    not_nan,
    power_of_two,            // a power of two from `low` to `high`
    zero_or_modulus,         // 0, or a number with an absolute value from `low` to `high`
    multiple_of,             // a multiple of `low`
    none_in_mode,            // a section not allowed in mode `low` with kernel `high`
    needed_in_mode,          // a section required in mode `low` with kernel `high`
    one_sign,                // a number with the same sign as `low`, which precedes it
    ascends,                 // a number above its predecessor in the list, from `low` to `high`
    utf8,                    // a byte of valid UTF-8
    text_above,              // a string above string `low` in byte order
    distinct,                // a label distinct from label `low`
    some_label_of_ensemble,  // any label of the ensemble
    newer_format,            // version `low`; the first release that can read the file is `high`
};

struct Expected {
    Rule rule;
    StoredNumber low, high;
};

constexpr std::uint64_t no_index = ~std::uint64_t{0};
constexpr std::uint32_t no_member = ~std::uint32_t{0};

struct ArtifactFault {
    section::Id section = section::none;  // section with the fault; none for the header and the section table
    field::Id field = field::none;        // field with the fault; none if the status is sufficient explanation
    std::uint64_t index = no_index;       // index in an array
    StoredNumber found{};
    Expected expected{};
    std::uint32_t member = no_member;    // index of the ensemble's faulty member, if any
    bool in_subspace_expansion = false;  // true if the fault is in section "subspace_expansion"
};

}  // namespace APPROXSVM_VERSION_NAMESPACE

inline namespace APPROXSVM_TARGET {

// A size implied by the dimensions declared in a file, in 64 bits on every machine: with a 32-bit size_t, the product
// of dimensions could overflow before it is compared with the actual size.
using ClaimedSize = std::uint64_t;

template <class T>
inline T read_at(const unsigned char* bytes, std::size_t offset) {
    T value;
    std::memcpy(&value, bytes + offset, sizeof value);
    return value;
}

inline bool is_power_of_two(double x, double low, double high) {
    int exponent;
    return x >= low && x <= high && std::frexp(x, &exponent) == 0.5;
}

template <class Number>
constexpr StoredNumber stored(Number x) {
    if constexpr (std::is_integral<Number>::value) {
        return StoredNumber(static_cast<std::uint64_t>(x));
    } else {
        return StoredNumber(static_cast<double>(x));
    }
}
constexpr StoredNumber stored(StoredNumber x) {
    return x;
}

template <class Number>
constexpr Expected equal_to(Number x) {
    return {Rule::equal, stored(x), stored(x)};
}
template <class Low, class High>
constexpr Expected from_to(Low low, High high) {
    return {Rule::from_to, stored(low), stored(high)};
}
template <class Number>
constexpr Expected at_least(Number low) {
    return {Rule::at_least, stored(low), stored(low)};
}
constexpr Expected finite_number = {Rule::finite, {}, {}};
constexpr Expected finite_from_0 = {Rule::finite_at_least, {}, {}};

template <class Enumeration>
constexpr std::uint32_t number_of(Enumeration e) {
    return static_cast<std::uint32_t>(e);
}
// Requires the number of an enumerator; `last` is the last enumerator.
template <class Enumeration>
constexpr Expected up_to(Enumeration last) {
    return from_to(0u, number_of(last));
}

// Returns whether a number meets a constraint; only for constraints that need no further information.
inline bool holds(const Expected& expected, const StoredNumber& found) {
    const double x = found.real(), low = expected.low.real(), high = expected.high.real();
    switch (expected.rule) {
        case Rule::equal:
            return found.is_whole() ? found.whole() == expected.low.whole() : x == low;
        case Rule::not_equal:
            return x != low;
        case Rule::from_to:
            return found.is_whole() ? found.whole() >= expected.low.whole() && found.whole() <= expected.high.whole()
                                    : x >= low && x <= high;
        case Rule::from_below:
            return x >= low && x < high;
        case Rule::at_least:
            return found.is_whole() ? found.whole() >= expected.low.whole() : x >= low;
        case Rule::above:
            return x > low;
        case Rule::finite:
            return is_finite(x);
        case Rule::finite_at_least:
            return x >= low && is_finite(x);
        case Rule::not_nan:
            return x == x;
        case Rule::power_of_two:
            return is_power_of_two(x, low, high);
        case Rule::zero_or_modulus:
            return x == 0.0 || (std::fabs(x) >= low && std::fabs(x) <= high);
        case Rule::multiple_of:
            return found.whole() % expected.low.whole() == 0;
        default:
            return false;
    }
}

// Checks the numbers in one section and keeps the first fault. After a fault, all checks fail.
class Check {
  public:
    // The first fault is stored in `fault`, which may be null; status() then returns `refusal`.
    Check(ArtifactFault* fault, section::Id section, Status refusal)
        : fault_(fault), section_(section), refusal_(refusal) {}

    Status status() const { return status_; }
    // Changes the status returned by status() after later faults.
    Check& as(Status refusal) {
        refusal_ = refusal;
        return *this;
    }
    section::Id section() const { return section_; }

    // Takes arguments in registers, because artifact readers consist mainly of such calls.
    template <class Number>
    APPROXSVM_INLINE bool operator()(field::Id field, Number found, const Expected& expected,
                                     std::uint64_t index = no_index) {
        const StoredNumber number = stored(found);
        return hold(named(field, number, expected), number.bits(), expected.low.bits(), expected.high.bits(), index);
    }
    template <class Number>
    APPROXSVM_INLINE bool refuse(field::Id field, Number found, const Expected& expected,
                                 std::uint64_t index = no_index) {
        const StoredNumber number = stored(found);
        return refuse_as(named(field, number, expected), number.bits(), expected.low.bits(), expected.high.bits(),
                         index);
    }
    // Checks each of n numbers.
    template <class Number>
    APPROXSVM_COLD bool each(field::Id field, const Number* numbers, std::size_t n, const Expected& expected) {
        for (std::size_t k = 0; k < n; ++k) {
            if (!holds(expected, stored(numbers[k]))) return refuse(field, numbers[k], expected, k);
        }
        return status_ == Status::ok;
    }

    // Checks that many real numbers are finite, or that their absolute values are within a limit.
    template <class Real>
    bool within(field::Id field, const Real* numbers, std::size_t n, const Expected& expected) {
        const Real most = expected.rule == Rule::finite ? (std::numeric_limits<Real>::max)()
                                                        : static_cast<Real>(expected.high.real());
        bool valid = true;
        for (std::size_t k = 0; k < n; ++k) valid &= std::fabs(numbers[k]) <= most;
        return valid ? status_ == Status::ok : each(field, numbers, n, expected);
    }
    template <class Real>
    bool finite(field::Id field, const Real* numbers, std::size_t n) {
        return within(field, numbers, n, finite_number);
    }
    // Checks that integers are strictly increasing and in the range given by `expected`.
    bool ascending(field::Id field, const std::uint32_t* numbers, std::size_t n, const Expected& expected) {
        std::uint64_t least = expected.low.whole();
        for (std::size_t k = 0; k < n; least = std::uint64_t{numbers[k]} + 1, ++k) {
            if (!(*this)(field, numbers[k], from_to(least, expected.high), k)) return false;
        }
        return status_ == Status::ok;
    }

    // Requires that the section's bytes from `first` up to, but not including, `last` are zero.
    APPROXSVM_COLD bool zeros(const unsigned char* section, std::size_t first, std::size_t last) {
        for (; first < last; ++first) {
            if (section[first] != 0) return refuse(field::any_padding, section[first], equal_to(0), first);
        }
        return status_ == Status::ok;
    }

  private:
    // The field, the rule, and flags that state which of the three numbers are integers.
    using Named = std::uint32_t;
    static constexpr int of_rule = 16, of_found = 24, of_low = 25, of_high = 26;
    APPROXSVM_INLINE static Named named(field::Id field, const StoredNumber& found, const Expected& expected) {
        return Named{field} | Named{number_of(expected.rule)} << of_rule | Named{found.is_whole()} << of_found |
               Named{expected.low.is_whole()} << of_low | Named{expected.high.is_whole()} << of_high;
    }
    static StoredNumber number_in(Named named, int place, std::uint64_t bits) {
        return StoredNumber::of_bits(bits, (named >> place & 1) != 0);
    }
    static Expected expected_in(Named named, std::uint64_t low, std::uint64_t high) {
        return {static_cast<Rule>(named >> of_rule & 0xff), number_in(named, of_low, low),
                number_in(named, of_high, high)};
    }

    APPROXSVM_NOINLINE bool hold(Named named, std::uint64_t found, std::uint64_t low, std::uint64_t high,
                                 std::uint64_t index) {
        const bool does = holds(expected_in(named, low, high), number_in(named, of_found, found));
        return does ? status_ == Status::ok : refuse_as(named, found, low, high, index);
    }
    APPROXSVM_NOINLINE bool refuse_as(Named named, std::uint64_t found, std::uint64_t low, std::uint64_t high,
                                      std::uint64_t index) {
        if (status_ != Status::ok) return false;
        status_ = refusal_;
        if (fault_) {
            *fault_ = ArtifactFault{};
            fault_->section = section_;
            fault_->field = static_cast<field::Id>(named & 0xffff);
            fault_->index = index;
            fault_->found = number_in(named, of_found, found);
            fault_->expected = expected_in(named, low, high);
        }
        return false;
    }

    ArtifactFault* fault_;
    section::Id section_;
    Status refusal_, status_ = Status::ok;
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif
