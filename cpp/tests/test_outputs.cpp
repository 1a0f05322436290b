#include <algorithm>
#include <approxsvm/outputs/outputs.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "check.hpp"

// Votes, certain winners and probabilities: certain winners against every
// outcome of the unknown pairs, probabilities against numbers that LIBSVM itself returned and against their definition.
// Scores, calibrations, intervals: tests/predict/test_outputs.py, against NumPy, scikit-learn and real numbers.

using namespace approxsvm;

namespace {

using Generator = std::mt19937_64;
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinite = std::numeric_limits<double>::infinity();

std::size_t winner_of(std::size_t n_classes, const std::vector<double>& values) {
    std::vector<std::uint32_t> votes(n_classes);
    return vote_winner(n_classes, values.data(), votes.data());
}

// --- certain winners ---

/// Knowledge in memory of exactly the promised size, and all that follows from it.
struct Row {
    std::size_t k;
    std::vector<double> values, bounds;
    std::vector<std::uint8_t> evaluated;
    std::vector<std::uint32_t> certain, possible;
    bool has_winner = false;
    std::size_t winner = 99;

    explicit Row(std::size_t n_classes)
        : k(n_classes), values(n_pairs(k)), bounds(n_pairs(k)), evaluated(n_pairs(k), 1), certain(k), possible(k) {}

    PairKnowledge known() const { return {values.data(), bounds.data(), evaluated.data()}; }
    void judge() {
        tally_votes(k, known(), certain.data(), possible.data());
        has_winner = certain_winner(k, certain.data(), possible.data(), winner);
    }
};

/// Sets the pairs to the outcomes that the digits of `code` in base 3 name: first, second, unknown for any reason.
Row row_of_code(std::size_t k, std::size_t code, Generator& generator) {
    Row row(k);
    for (std::size_t p = 0; p < n_pairs(k); ++p, code /= 3) {
        row.bounds[p] = 0.25;
        row.values[p] = code % 3 == 0 ? 0.5 : code % 3 == 1 ? -0.5 : 0.125;
        if (code % 3 != 2) continue;
        switch (generator() % 6) {
            case 0:
                row.evaluated[p] = 0;
                row.values[p] = 7.0;
                break;
            case 1:
                row.values[p] = not_a_number;
                break;
            case 2:
                row.bounds[p] = not_a_number;
                break;
            case 3:
                row.bounds[p] = row.values[p] = infinite;
                break;
            case 4:
                row.values[p] = -infinite;
                break;
            default:
                row.values[p] = 0.25;  // just as large as its bound
        }
    }
    return row;
}

/// Which classes win for some outcome of the unknown pairs.
std::vector<bool> possible_winners(const Row& row) {
    std::vector<std::size_t> unknown;
    std::vector<double> values(n_pairs(row.k));
    for (std::size_t p = 0; p < values.size(); ++p) {
        const Outcome outcome = outcome_of(row.known(), p);
        if (outcome == Outcome::unknown) unknown.push_back(p);
        values[p] = outcome == Outcome::first ? 1.0 : -1.0;
    }
    std::vector<bool> wins(row.k);
    for (std::size_t bits = 0; bits < std::size_t{1} << unknown.size(); ++bits) {
        for (std::size_t u = 0; u < unknown.size(); ++u) values[unknown[u]] = bits >> u & 1 ? 1.0 : -1.0;
        wins[winner_of(row.k, values)] = true;
    }
    return wins;
}

/// Everything about one row.
void check_row(Row& row) {
    row.judge();
    const std::vector<bool> wins = possible_winners(row);
    std::size_t n_possible = 0, last = 0;
    for (std::size_t c = 0; c < row.k; ++c) {
        if (wins[c]) ++n_possible, last = c;
    }
    CHECK_EQ(row.has_winner, n_possible == 1);
    if (row.has_winner) CHECK_EQ(row.winner, last);
    for_each_pair(row.k, [&](std::size_t p, std::size_t i, std::size_t j) { CHECK_EQ(p, pair_position(row.k, i, j)); });
}

// --- probabilities ---

struct FromLibsvm {
    std::vector<double> values, prob_a, prob_b, probabilities;
    std::size_t label;
};

// svm_predict_probability of libsvm-official 3.37 on models without support vectors, whose values are -rho.
const FromLibsvm from_libsvm[] = {
    {{}, {}, {}, {1.0}, 0},
    {{-0.75}, {-2.75}, {-0.125}, {0x1.01e3cb664f724p-3, 0x1.bf870d266c237p-1}, 1},
    {{336.375}, {-2.375}, {0.0625}, {0x1.fffffca501acbp-1, 0x1.ad7f29a800000p-24}, 0},
    {{-0.5, -0.75, 0.75},
     {-3.375, -0.625, -2.625},
     {-0.5, 0.8125, 0.125},
     {0x1.171533a51bff4p-3, 0x1.6e117c89a0d97p-1, 0x1.30a4da34609b0p-3},
     1},
    {{-52.0, -2.5, -34.875},
     {-1.375, -1.125, -1.5},
     {0.25, -0.0625, -0.3125},
     {0x1.f05483d6bbaf2p-6, 0x1.d7aca897514e9p-10, 0x1.ef91858cfe79fp-1},
     2},
    {{0.0, 0.125, -0.125, 0.0, -0.125, 0.0},
     {-2.75, -0.125, -0.25, -0.75, -2.25, -0.875},
     {-0.5625, -0.6875, 0.125, -0.5625, 0.5625, 0.375},
     {0x1.4139a70b32e5ap-2, 0x1.73eb425f69870p-3, 0x1.4ff6454a25d16p-3, 0x1.5cd59520056e5p-2},
     3},
    {{-4.0, 0.5, -2.25, 0.125, 0.125, -4.0, -0.5, -0.5, 1.875, -2.375},
     {-1.625, -2.375, -0.75, -1.75, -3.0, -1.25, -5.0, -1.375, -1.875, -1.75},
     {-0.3125, -0.0625, 0.6875, -0.1875, 0.125, 0.0, 0.3125, -0.1875, -0.0625, 0.125},
     {0x1.406a3ce704b62p-3, 0x1.178aa6f6e7802p-3, 0x1.04665f9a2e7d4p-2, 0x1.025616959b5f0p-2, 0x1.9a922fc28011bp-3},
     2},
    {{51.5,     -432.5, 447.875, -649.25,  -600.5,  -641.25, 483.5,    -180.25, -485.5,  -568.0, 210.625,
      -527.375, -636.0, 307.0,   -598.375, -161.25, -3.375,  -222.625, -27.0,   669.375, -258.5},
     {-2.625, -3.75,  -0.5,   -0.875, -0.625, -1.0,   -1.125, -1.625, -1.125, -0.5,  -0.875,
      -0.375, -3.875, -1.125, -3.25,  -3.625, -0.875, -2.0,   -2.0,   -0.125, -1.375},
     {-0.3125, -0.5, 0.0,    0.5625, -0.1875, 0.1875, 0.9375, -0.625, 0.125, -0.125, -0.5,
      -0.5,    0.0,  0.1875, -0.25,  0.0,     0.375,  0.125,  0.4375, 0.25,  0.25},
     {0x1.53ed2690ade8fp-4, 0x1.53cf9e4e075ddp-4, 0x1.53ca9758e162ap-4, 0x1.5f8a395ceac5bp-4, 0x1.53df8cc9c7a1bp-2,
      0x1.56c3ec9a7fd53p-3, 0x1.53f42f07b02fbp-3},
     4},
};

std::vector<double> random_numbers(Generator& generator, std::size_t n, double scale) {
    std::normal_distribution<double> normal(0.0, scale);
    std::vector<double> numbers(n);
    for (double& x : numbers) x = normal(generator);
    return numbers;
}

}  // namespace

TEST(votes_follow_libsvm) {
    CHECK_EQ(winner_of(1, {}), 0u);
    CHECK_EQ(winner_of(2, {1e-300}), 0u);
    for (const double second : {0.0, -0.0, -1e-300, not_a_number}) CHECK_EQ(winner_of(2, {second}), 1u);
    CHECK_EQ(winner_of(3, {1, -1, 1}), 0u);   // one vote each
    CHECK_EQ(winner_of(3, {-1, 1, -1}), 0u);  // and the other way round
    CHECK_EQ(winner_of(3, {-1, -1, 1}), 1u);
    CHECK_EQ(winner_of(4, {-1, -1, -1, 1, -1, -1}), 3u);
    CHECK_EQ(winner_of(4, {-1, -1, -1, 1, -1, 1}), 1u);  // two votes for each of 1, 2 and 3
}

TEST(outcomes_are_certain_only_by_true_comparisons) {
    CHECK(outcome_of(1.0, 0.5) == Outcome::first);
    CHECK(outcome_of(-1.0, 0.5) == Outcome::second);
    CHECK(outcome_of(0.5, 0.5) == Outcome::unknown);  // the exact value may be 0, a vote for the second
    CHECK(outcome_of(-0.5, 0.5) == Outcome::second);  // it is at most 0
    CHECK(outcome_of(0.0, 0.0) == Outcome::second);
    CHECK(outcome_of(-0.0, 0.0) == Outcome::second);
    CHECK(outcome_of(5e-324, 0.0) == Outcome::first);
    for (const double value : {0.0, 1.0, -1.0, not_a_number, infinite, -infinite}) {
        for (const double bound : {not_a_number, infinite, -1.0, -infinite})
            CHECK(outcome_of(value, bound) == Outcome::unknown);
    }
    for (const double value : {not_a_number, infinite, -infinite}) CHECK(outcome_of(value, 1.0) == Outcome::unknown);
    const double values[] = {1.0}, bounds[] = {0.0};
    CHECK(outcome_of(PairKnowledge{values, bounds, nullptr}, 0) == Outcome::first);
}

TEST(certain_winners_equal_those_of_all_outcomes) {
    Generator generator(1);
    for (std::size_t k = 1; k <= 4; ++k) {
        std::size_t n_codes = 1;
        for (std::size_t p = 0; p < n_pairs(k); ++p) n_codes *= 3;
        for (std::size_t code = 0; code < n_codes; ++code) {
            Row row = row_of_code(k, code, generator);
            check_row(row);
        }
    }
    for (std::size_t code = 0; code < 59049; ++code) {  // 3^10: all of five classes
        Row row = row_of_code(5, code, generator);
        check_row(row);
    }
    for (int repetition = 0; repetition < 2000; ++repetition) {
        Row row = row_of_code(6, generator() % 14348907, generator);
        check_row(row);
    }
}

TEST(two_classes_are_coupled_where_it_is_asked_for) {
    const double value = 1.0, a = -2.0, b = 0.0;
    double plain_p[2], coupled[2], room[coupling_doubles(2)];
    class_probabilities(2, &value, &a, &b, plain_p, room);
    class_probabilities(2, &value, &a, &b, coupled, room, true);
    CHECK_EQ(plain_p[0], sigmoid(-2.0));
    CHECK(coupled[0] != plain_p[0] && std::fabs(coupled[0] - plain_p[0]) < 0.005);
    CHECK(std::fabs(coupled[0] + coupled[1] - 1.0) < 1e-15);
}

TEST(no_classes_no_winner) {
    std::size_t winner;
    const std::uint32_t* none = nullptr;
    CHECK(!certain_winner(0, none, none, winner));
}

TEST(sigmoid_neither_overflows_nor_cancels) {
    CHECK_EQ(sigmoid_probability(0.0, -1.0, 0.0), 0.5);
    CHECK_EQ(sigmoid_probability(1e6, -1.0, 0.0), 1.0);
    CHECK_EQ(sigmoid_probability(-1e6, -1.0, 0.0), 0.0);
    CHECK_EQ(sigmoid_probability(-700.0, -1.0, 0.0), std::exp(-700.0));
    CHECK_EQ(pair_probability(1e6, -1.0, 0.0), 1.0 - 1e-7);
    CHECK_EQ(pair_probability(-1e6, -1.0, 0.0), 1e-7);
    CHECK_EQ(pair_probability(not_a_number, -1.0, 0.0), 1e-7);
}

/// The last digits depend on the exp of the system's library; everything after it is exact arithmetic.
TEST(probabilities_are_libsvms) {
    for (const FromLibsvm& expected : from_libsvm) {
        const std::size_t k = expected.probabilities.size();
        std::vector<double> probabilities(k), room(coupling_doubles(k));
        CHECK_EQ(class_probabilities(k, expected.values.data(), expected.prob_a.data(), expected.prob_b.data(),
                                     probabilities.data(), room.data()),
                 expected.label);
        for (std::size_t c = 0; c < k; ++c) {
            CHECK(std::fabs(probabilities[c] - expected.probabilities[c]) <= 1e-14 * expected.probabilities[c]);
        }
    }
}

TEST(coupling_finds_its_fixed_point) {
    Generator generator(3);
    for (int repetition = 0; repetition < 500; ++repetition) {
        const std::size_t k = 3 + generator() % 20, n = n_pairs(k);
        const std::vector<double> values = random_numbers(generator, n, 2.0), b = random_numbers(generator, n, 0.5);
        const std::vector<double> a(n, -1.0);
        std::vector<double> p(k), room(coupling_doubles(k));
        class_probabilities(k, values.data(), a.data(), b.data(), p.data(), room.data());
        double sum = 0.0, largest = 0.0, pqp = 0.0;
        for (const double x : p) sum += x;
        CHECK(std::fabs(sum - 1.0) < 1e-12);
        std::vector<double> qp(k);  // from the definition, pair by pair
        for_each_pair(k, [&](std::size_t pair, std::size_t i, std::size_t j) {
            const double r_ij = pair_probability(values[pair], a[pair], b[pair]), r_ji = 1.0 - r_ij;
            const double residual = r_ji * p[i] - r_ij * p[j];
            qp[i] += r_ji * residual;
            qp[j] -= r_ij * residual;
        });
        for (std::size_t c = 0; c < k; ++c) pqp += p[c] * qp[c];
        for (const double x : qp) largest = std::max(largest, std::fabs(x - pqp));
        CHECK(largest < 0.0051 / static_cast<double>(k));
    }
}

TEST(inliers_fall_into_bins) {
    const double marks[] = {-4, -3, -2, -1, 0, 1, 2, 3, 4, 5};
    CHECK_EQ(inlier_probability(-4.5, marks), 0.001);
    CHECK_EQ(inlier_probability(-4.0, marks), 0.1);
    CHECK_EQ(inlier_probability(-0.5, marks), 0.4);
    CHECK_EQ(inlier_probability(0.0, marks), 0.5);
    CHECK_EQ(inlier_probability(4.5, marks), 0.9);
    CHECK_EQ(inlier_probability(5.0, marks), 0.0);  // as LIBSVM has it
    CHECK_EQ(inlier_probability(5.5, marks), 0.999);
    CHECK_EQ(inlier_probability(not_a_number, marks), 0.0);
}
