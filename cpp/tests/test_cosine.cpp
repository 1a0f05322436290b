#include "parts.hpp"

// The microkernel of cosines against cosl. Compiled once per target; a CPU that lacks the target's instructions skips
// the whole program.

using namespace approxsvm;

namespace {

/// 2 pi to 80 bits; long double is one of float64 on some machines, and then the reference is not better than that.
constexpr long double two_pi = 6.283185307179586476925286766559L;

template <class Real>
constexpr long double unit_roundoff = std::numeric_limits<Real>::epsilon() / 2;

/// The worst error in units over all arguments, `at` where it is.
template <class Real>
struct Worst {
    long double units = 0;
    Real at = 0;

    void add(const std::vector<Real>& turns) {
        constexpr std::size_t n = 2, width = static_cast<std::size_t>(lanes_of<Real>);
        typename RegisterOf<Real>::type x[n];
        Real found[n * width];
        for (std::size_t first = 0; first + n * width <= turns.size(); first += n * width) {
            for (std::size_t i = 0; i < n; ++i) x[i] = load(turns.data() + first + i * width);
            cosine_of_turns(x);
            for (std::size_t i = 0; i < n; ++i) store(found + i * width, x[i]);
            for (std::size_t k = 0; k < n * width; ++k) {
                // Whole turns are taken off first, exactly, so that the reference is not off by their digits.
                const long double turn = turns[first + k], rest = turn - std::nearbyint(turn);
                const long double error = std::fabs(found[k] - std::cos(two_pi * rest)) / unit_roundoff<Real>;
                if (error <= units) continue;
                units = error;
                at = turns[first + k];
            }
        }
    }
};

template <class Real>
void expect_small(const char* what, const Worst<Real>& worst) {
    std::printf("  %s: worst error %.3f units at %.17g\n", what, static_cast<double>(worst.units),
                static_cast<double>(worst.at));
    // Where the reference has no more digits than float64, its own rounding is among what is found.
    CHECK(worst.units > 0);
    CHECK(worst.units <= (sizeof(Real) == 8 && sizeof(long double) == 8 ? 12.0L : cosine_error_units));
}

/// Turns from 0 to 1/2, evenly, and around every multiple of 1/8 and 2^-k.
template <class Real>
std::vector<Real> within_half_a_turn(std::size_t n) {
    std::vector<Real> turns;
    for (std::size_t k = 0; k < n; ++k) turns.push_back(static_cast<Real>(0.5L * k / n));
    std::vector<Real> marks = {0, Real(0.125), Real(0.25), Real(0.375), Real(0.5)};
    for (int k = 4; k < 140; ++k) marks.push_back(std::ldexp(Real(1), -k));
    for (const Real mark : marks) {
        Real up = mark, down = mark;
        for (int k = 0; k < 200; ++k) {
            turns.push_back(up);
            turns.push_back(down);
            up = std::nextafter(up, Real(1));
            down = std::nextafter(down, Real(-1));
        }
    }
    while (turns.size() % 64 != 0) turns.push_back(0);
    return turns;
}

template <class Real>
void expect_small_everywhere(std::size_t n, double max_turns) {
    Worst<Real> half, negative, far;
    std::vector<Real> turns = within_half_a_turn<Real>(n);
    half.add(turns);
    expect_small("half a turn", half);
    for (Real& turn : turns) turn = -turn;
    negative.add(turns);
    CHECK(negative.units == half.units);  // an even function, to the last bit
    std::mt19937_64 random(1);
    for (Real& turn : turns) {
        const double share = static_cast<double>(random() >> 11) * 0x1p-52 - 1;
        turn = static_cast<Real>(std::ldexp(share, static_cast<int>(random() % 64)));
        if (std::fabs(turn) > max_turns) turn = static_cast<Real>(share * max_turns);
    }
    turns[0] = static_cast<Real>(max_turns);
    turns[1] = static_cast<Real>(-max_turns);
    turns[2] = static_cast<Real>(max_turns) - Real(0.5);
    far.add(turns);
    expect_small("many turns", far);
}

}  // namespace

TEST(float32_cosines_are_within_their_bound) {
    expect_small_everywhere<float>(1000000, max_turns32);
}

TEST(float64_cosines_are_within_their_bound) {
    expect_small_everywhere<double>(400000, max_turns64);
}

TEST(cosines_of_whole_turns_are_exact_where_they_are_simple) {
    float x[16] = {0.0f, 0.25f, 0.5f, 0.75f, 1.0f, -0.25f, -0.5f, 1e6f, 1000000.5f, 1000000.25f};
    for (int first = 0; first < 16; first += lanes) {
        f32v one[1] = {load(x + first)};
        cosine_of_turns(one);
        store(x + first, one[0]);
    }
    const float expected[16] = {1, 0, -1, 0, 1, 0, -1, 1, -1, 0, 1, 1, 1, 1, 1, 1};
    for (int k = 0; k < 16; ++k) CHECK(std::fabs(x[k] - expected[k]) <= 0x1p-23f);
    CHECK_EQ(x[1], 0.0f);
}
