// Reads the numbers and arrays of a section in order, checking each number.
#ifndef APPROXSVM_ARTIFACT_WALK_HPP
#define APPROXSVM_ARTIFACT_WALK_HPP

#include "envelope.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// A count or size declared by a file, in 64 bits on every machine. Sums and products saturate at `most`, which exceeds
// any memory, so they never wrap around before they are compared with the actual size.
class Count {
  public:
    static constexpr std::uint64_t most = std::uint64_t{1} << 60;

    constexpr Count(std::uint64_t n) : n_(n < most ? n : most) {}
    constexpr std::uint64_t n() const { return n_; }

    friend constexpr bool operator==(Count a, Count b) { return a.n_ == b.n_; }
    friend constexpr bool operator>(Count a, Count b) { return a.n_ > b.n_; }
    friend Count operator+(Count a, Count b) { return a.n_ + b.n_; }
    friend Count operator-(Count a, Count b) { return a.n_ > b.n_ ? a.n_ - b.n_ : 0; }
    friend Count operator/(Count a, Count b) { return a.n_ / b.n_; }
    APPROXSVM_NOINLINE friend Count operator*(Count a, Count b) {
        return b.n_ != 0 && a.n_ > most / b.n_ ? most : a.n_ * b.n_;
    }

  private:
    std::uint64_t n_;
};
constexpr Count unlimited = Count::most;

constexpr Count least(Count a, Count b) {
    return a.n() < b.n() ? a : b;
}
constexpr StoredNumber stored(Count n) {
    return StoredNumber(n.n());
}

// Constraints on the elements of arrays.
inline Expected below(Count n) {
    return from_to(0, n - 1);
}
inline Expected ascending(Count low, Count high) {
    return {Rule::ascends, stored(low), stored(high)};
}
constexpr Expected within(double most) {
    return from_to(-most, most);
}
// The range of coefficients that can be summed in float32.
constexpr Expected summable = {Rule::zero_or_modulus, stored(least_coefficient), stored(most_coefficient)};

// After the first fault, all checks fail. Invalid integers result in Status::bad_section, and invalid real numbers in
// Status::bad_coefficient.
class Walk {
  public:
    Walk(const SectionTable& sections, ArtifactFault* fault) : sections_(&sections), fault_(fault) {}
    // Reads validated bytes, without further checks.
    explicit Walk(const unsigned char* bytes) : is_trusted_(true), bytes_(bytes), n_bytes_(Count::most) {}

    Status status() const { return check_.status(); }

    // Begins a section; returns false if it is absent or an earlier check has failed.
    bool begin(section::Id id) {
        if (status() != Status::ok || !sections_->at(id)) return false;
        check_ = Check(fault_, id, Status::bad_section);
        bytes_ = sections_->at(id);
        n_bytes_ = (*sections_)[id].bytes;
        at_ = 0;
        index_ = no_index;
        return true;
    }
    void end() { check_.as(Status::bad_section)(field::any_size, n_bytes_, equal_to(at_)); }

    template <class Number>
    Number number(field::Id field, const Expected& expected) {
        const unsigned char* const first = take(1, sizeof(Number));
        if (!first) return Number{};
        const Number number = read_at<Number>(first, 0);
        if (!is_trusted_) check_.as(status_of<Number>)(field, number, expected, index_);
        return number;
    }
    template <class Number>
    void numbers(field::Id field, const Number*& array, Count count, const Expected& expected) {
        const unsigned char* const first = take(count, sizeof(Number));
        if (!first) return;
        array = reinterpret_cast<const Number*>(first);
        if (is_trusted_) return;
        check_.as(status_of<Number>);
        const std::size_t n = static_cast<std::size_t>(count.n());
        if constexpr (std::is_integral<Number>::value) {
            expected.rule == Rule::ascends ? check_.ascending(field, array, n, expected)
                                           : check_.each(field, array, n, expected);
        } else {
            check_.within(field, array, n, expected);
        }
    }
    template <class Record>
    void records(const Record*& array, Count count) {
        const unsigned char* const first = take(count, sizeof(Record));
        if (!first) return;
        array = reinterpret_cast<const Record*>(first);
        if (is_trusted_) return;
        check_.as(Status::bad_coefficient);
        const std::size_t n = static_cast<std::size_t>(count.n()), before = index_ == no_index ? 0 : index_ * n;
        for (std::size_t k = 0; k < n && status() == Status::ok; ++k) check_record(check_, array[k], before + k);
    }
    std::size_t sum(field::Id field, const std::uint32_t* array, Count first, Count n, const Expected& expected) {
        std::uint64_t total = 0;
        if (status() != Status::ok) return 0;
        for (std::uint64_t k = first.n(); k < first.n() + n.n(); ++k) total += array[k];
        if (!is_trusted_) check_.as(Status::bad_section)(field, total, expected, index_);
        return static_cast<std::size_t>(total);
    }
    // Returns the section's size divided by `bytes_of_each`.
    std::size_t measure(Count bytes_of_each, Count low, Count high) {
        const Expected limits =
            high.n() < Count::most ? from_to(low * bytes_of_each, high * bytes_of_each) : at_least(low * bytes_of_each);
        check_(field::any_size, n_bytes_, Expected{Rule::multiple_of, stored(bytes_of_each), {}});
        check_(field::any_size, n_bytes_, limits);
        return static_cast<std::size_t>(n_bytes_ / bytes_of_each.n());
    }
    APPROXSVM_NOINLINE void zeros(std::size_t multiple) {
        const std::size_t first = at_;
        if (take((multiple - at_ % multiple) % multiple, 1) && !is_trusted_)
            check_.as(Status::bad_section).zeros(bytes_, first, at_);
    }
    // Begins repeated groups, which start at the current position; returns their number.
    template <class Start>
    std::size_t groups(const Start*& start, Count count) {
        start = count.n() > 0 ? reinterpret_cast<const Start*>(bytes_ + at_) : nullptr;
        return static_cast<std::size_t>(count.n());
    }
    // Begins group k; returns false after a fault.
    bool begin_group(std::size_t k) {
        index_ = k;
        return status() == Status::ok;
    }

  protected:
    std::size_t position() const { return at_; }
    bool is_trusted_ = false;

  private:
    template <class Number>
    static constexpr Status status_of = std::is_integral<Number>::value ? Status::bad_section : Status::bad_coefficient;

    // Consumes the next bytes; returns null after a fault, or if fewer bytes are left in the section.
    APPROXSVM_NOINLINE const unsigned char* take(Count count, std::size_t width) {
        const Count end = at_ + count * width;
        if (!check_.as(Status::bad_section)(field::any_size, n_bytes_, at_least(end))) return nullptr;
        const unsigned char* const first = bytes_ + at_;
        at_ = static_cast<std::size_t>(end.n());
        return first;
    }

    const SectionTable* sections_ = nullptr;
    ArtifactFault* fault_ = nullptr;
    Check check_{nullptr, section::none, Status::bad_section};
    const unsigned char* bytes_ = nullptr;
    std::uint64_t n_bytes_ = 0;
    std::size_t at_ = 0;
    std::uint64_t index_ = no_index;
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif
