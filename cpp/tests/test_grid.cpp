#include "parts.hpp"

// Vectors on a grid as 16-bit integers: which are, their kernel values against long double, one row and many. Compiled
// once per target, also where floats are taken instead.

namespace grid {

using namespace approxsvm;
using check::expect;

namespace {

// Vectors on a grid, all as far off as it allows, and rows that are not on it.
struct Case {
    static constexpr std::size_t n_sv = 37, n_rows = static_cast<std::size_t>(lanes);
    std::size_t d;
    float step;
    std::vector<float> vectors, rows;  // rows side by side

    Case(std::size_t n_features, float grid, double share, Random& random)
        : d(n_features), step(grid), vectors(n_sv * d), rows(d * n_rows) {
        std::normal_distribution<double> normal;
        const auto draw = [&](float* x, std::size_t stride, double length, bool rounded) {
            std::vector<double> direction(d);
            double norm = 0;
            for (double& u : direction) {
                u = normal(random);
                norm += u * u;
            }
            for (std::size_t j = 0; j < d; ++j) {
                const double at = length * direction[j] / std::sqrt(norm);
                x[j * stride] = static_cast<float>(rounded ? std::trunc(at) : at) * step;
            }
        };
        const double most = std::sqrt(most_steps_sq) / room_for_rows;
        for (std::size_t i = 0; i < n_sv; ++i) draw(&vectors[i * d], 1, i % 2 == 0 ? most : share * most, true);
        for (std::size_t r = 0; r < n_rows; ++r) draw(&rows[r], n_rows, r % 2 == 0 ? 1.04 * most : share * most, false);
        for (std::size_t j = 0; j < d; ++j) vectors[d + j] = -vectors[j];  // the furthest from each other
    }
};

}  // namespace

TEST(which_vectors_are_on_a_grid) {
    if (!multiplies_pairs) return;
    Random random(1);
    Case given(7, 0x1p-12f, 0.3, random);
    const float found = grid_step(given.vectors.data(), given.n_sv, given.d);
    EXPECT(found == given.step || 2 * found == given.step, "step " + check::show(found));
    given.vectors[20] = std::nextafter(given.vectors[20] + given.step, 1.0f);
    EXPECT(grid_step(given.vectors.data(), given.n_sv, given.d) == 0.0f, "one unit in the last place is off it");
    given.vectors.assign(given.vectors.size(), 0.0f);
    EXPECT(grid_step(given.vectors.data(), given.n_sv, given.d) == 0.0f, "zeros need none");
}

TEST(kernel_values_on_a_grid) {
    Random random(2);
    for (const std::size_t d : {1u, 2u, 5u, 16u, 33u, 130u}) {
        for (const double share : {0.001, 0.03, 0.5}) {
            const Case given(d, 0x1p-9f, share, random);
            const double half_theta = 1.3, limit = 0x1p29;
            for (const double scale : {1e-9, 3e-7, 1e-4}) {  // of the argument of exp: near 0, and far beyond 87
                const double theta = half_theta * scale / 0x1p-18;
                Arena counter(nullptr);
                const GridMemory size(48, d, counter);
                std::vector<unsigned char> bytes(counter.bytes_anywhere());
                Arena arena(bytes.data());
                const GridMemory memory(48, d, arena);
                GridKernels grid = fill_grid(given.vectors.data(), given.n_sv, d, d, given.step, theta, memory);
                std::vector<std::int32_t> codes(pairs_for(d) * given.n_rows), norms(given.n_rows);
                std::vector<float> off(given.n_rows), row(d), values(48), again(48);
                round_block<1>(grid, given.rows.data(), codes.data(), norms.data(), off.data());
                const ListedErrors errors = grid_errors(given.n_sv);
                for (std::size_t r = 0; r < given.n_rows; ++r) {
                    for (std::size_t j = 0; j < d; ++j) row[j] = given.rows[j * given.n_rows + r];
                    std::vector<std::int16_t> shorts(2 * pairs_for(d));
                    const RoundedRow rounded = round_row(grid, row.data(), shorts.data());
                    long double off_sq = 0, norm = 0;
                    for (std::size_t j = 0; j < d; ++j) {
                        const std::int32_t pair = codes[j / 2 * given.n_rows + r];
                        const int in_block = j % 2 == 0 ? static_cast<std::int16_t>(pair & 0xFFFF) : pair >> 16;
                        EXPECT(in_block == shorts[j], "a row has other codes in a block");
                        const long double e = static_cast<long double>(row[j]) / given.step - shorts[j];
                        off_sq += e * e;
                        norm += static_cast<long double>(shorts[j]) * shorts[j];
                    }
                    EXPECT(norm <= limit && rounded.sq_norm == norms[r] && norms[r] == norm, "another norm");
                    EXPECT(std::fabs(off[r] - off_sq) <= 1e-5 * off_sq + 1e-12, "off by " + check::show(off[r]));
                    EXPECT(std::fabs(rounded.off_sq - off_sq) <= 1e-5 * off_sq + 1e-12, "alone");
                    kernels_row_by<InTwo>(grid, 0, grid.n_panels, shorts.data(), rounded.sq_norm, values.data());
                    kernels_row(grid, shorts.data(), rounded.sq_norm, again.data());
                    for (std::size_t i = 0; i < given.n_sv; ++i) {
                        long double sq_distance = 0;
                        for (std::size_t j = 0; j < d; ++j) {
                            const long double q = static_cast<long double>(given.vectors[i * d + j]) / given.step;
                            sq_distance += (q - shorts[j]) * (q - shorts[j]);
                        }
                        const long double truth =
                            std::exp(-static_cast<long double>(theta) * given.step * given.step * sq_distance);
                        const long double bound = errors.of_moduli * truth + errors.of_all_moduli;
                        EXPECT(std::fabs(values[i] - truth) <= bound, "K " + check::show(values[i]));
                        EXPECT(values[i] == again[i], "in one instruction it is another");
                    }
                }
            }
        }
    }
}

// Rows side by side, in one instruction and in two, and one by one: the same sums but for the order of additions.
TEST(listed_sums_on_a_grid) {
    Random random(3);
    constexpr std::size_t n_sums = 2, n_tiles = 3, n = n_tiles * tile_rows, rows = Case::n_rows;
    for (const std::size_t d : {3u, 64u}) {
        const Case given(d, 1.0f, 0.5, random);
        Arena counter(nullptr);
        const GridMemory size(48, d, counter);
        std::vector<unsigned char> bytes(counter.bytes_anywhere());
        Arena arena(bytes.data());
        const GridKernels grid =
            fill_grid(given.vectors.data(), given.n_sv, d, d, given.step, 1e-8, GridMemory(48, d, arena));
        std::vector<std::size_t> offsets(n);
        std::vector<std::uint32_t> lane_of(n);
        std::vector<float> coef(n * n_sums), found[2], row(d), values(48);
        for (std::size_t k = 0; k < n; ++k) {
            const std::size_t lane = (7 * k + 3) % given.n_sv, width = panel_width<float>;
            lane_of[k] = static_cast<std::uint32_t>(lane);
            offsets[k] = lane / width * width * pairs_for(d) + lane % width;
        }
        for (std::size_t k = 0; k < coef.size(); ++k) coef[k] = static_cast<float>(k + 1);
        const ListOfVectors list{offsets.data(), lane_of.data(), nullptr, coef.data()};
        std::vector<std::int32_t> codes(pairs_for(d) * rows), norms(rows);
        std::vector<float> off(rows);
        round_block<1>(grid, given.rows.data(), codes.data(), norms.data(), off.data());
        for (std::vector<float>& sums : found) sums.assign(n_sums * rows, 0.0f);
        add_listed_on_grid<InTwo, 1>(grid, list, n_sums, 0, n_tiles, codes.data(), norms.data(), found[0].data());
        if (fuses_pairs())
            add_listed_on_grid<InOne, 1>(grid, list, n_sums, 0, n_tiles, codes.data(), norms.data(), found[1].data());
        EXPECT(!fuses_pairs() || found[0] == found[1], "sums in one instruction are others");
        for (std::size_t r = 0; r < rows; ++r) {
            for (std::size_t j = 0; j < d; ++j) row[j] = given.rows[j * rows + r];
            std::vector<std::int16_t> shorts(2 * pairs_for(d));
            const RoundedRow rounded = round_row(grid, row.data(), shorts.data());
            kernels_row(grid, shorts.data(), rounded.sq_norm, values.data());
            double room[n_sums * tile_rows], alone[n_sums];
            const float* const of_lanes = values.data();
            listed_sums_row(list, n_sums, 0, n_tiles, of_lanes, room, alone);
            for (std::size_t f = 0; f < n_sums; ++f) {
                const double error = std::fabs(static_cast<double>(found[0][f * rows + r]) - alone[f]);
                EXPECT(alone[f] > 0 && error <= 1e-5 * alone[f], "a row alone has another sum");
            }
        }
    }
}

}  // namespace grid
