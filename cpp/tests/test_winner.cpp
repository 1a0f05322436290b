#include "parts.hpp"

// Tests the engine for the pairs of one class, and the network that guesses the winning class. Compiled once per
// target.

namespace winner {

using namespace engine_models;
using Model = EngineModel<AllPairs<float>>;

namespace {

/// The winner engine's lists, in memory of exactly the required size, which is first filled with NaN.
struct WinnerLists {
    std::vector<char> memory;
    bool is_usable;
    WinnerKernelSum sums{};
    std::vector<std::uint32_t> lane_of;

    explicit WinnerLists(const Model& model) {
        const PairCoefficients pairs{model.coef.data(), model.counts.data(), model.counts.size(), model.n_sv};
        Arena counter(nullptr);
        const WinnerMemory counted(pairs, model.n_features, counter);
        memory.assign(counter.bytes_anywhere(), '\xff');
        Arena arena(memory.data());
        const WinnerMemory pieces(pairs, model.n_features, arena);
        is_usable = pieces.is_usable;
        EXPECT(is_usable == counted.is_usable, "counting and laying out disagree");
        EXPECT(arena.bytes_anywhere() - 64 <= memory.size(), "the lists take more than was promised");
        if (!is_usable) return;
        sums = fill_winner(pairs, model.kernels(), pieces);
        lane_of.assign(pieces.lane_of, pieces.lane_of + model.n_sv);
    }
};

/// Gives all coefficients of a class in a pair the same sign, and absolute values between 2^-50 and 2^50.
Model with_uniform_signs(const Model& model) {
    std::vector<double> coef = model.coef;
    std::size_t s = 0;
    for (std::size_t c = 0; c < model.counts.size(); ++c) {
        for (const std::size_t end = s + model.counts[c]; s < end; ++s) {
            for (std::size_t r = 0; r < model.n_functions; ++r) {
                double& a = coef[r * model.n_sv + s];
                if (a != 0) a = std::min(std::max(std::fabs(a), 0x1p-50), 0x1p50) * ((c + r) % 2 == 0 ? 1 : -1);
            }
        }
    }
    return Model(model.counts, model.vectors, coef, model.n_features, model.half_theta, 3);
}

/// The sums `own` and `others` for every class w, interleaved: n_classes x 2 n_classes values per row.
template <int Registers>
std::vector<Sums> winner_sums(const Model& model, const WinnerLists& lists, const Rows<float>& rows) {
    constexpr std::size_t width = static_cast<std::size_t>(Registers * lanes);
    const std::size_t d = model.n_features, k = model.counts.size(), n_blocks = (rows.size() + width - 1) / width;
    const std::vector<float> blocks = blocks_of(rows, d, width);
    std::vector<Sums> result(rows.size(), Sums(2 * k * k));
    for (std::size_t b = 0; b < n_blocks; ++b) {
        std::vector<float> half_sq_norm(width), partial(k * width);
        half_sq_norms_block<Registers>(model.kernels(), blocks.data() + b * d * width, half_sq_norm.data());
        for (std::size_t w = 0; w < k; ++w) {
            std::vector<double> own(k * width, 99.0), others(k * width, 99.0);
            winner_sums_block<Registers>(lists.sums, w, blocks.data() + b * d * width, half_sq_norm.data(),
                                         partial.data(), own.data(), others.data());
            for (std::size_t r = b * width; r < std::min(rows.size(), (b + 1) * width); ++r) {
                for (std::size_t c = 0; c < k; ++c) {
                    result[r][2 * (w * k + c)] = own[c * width + r % width];
                    result[r][2 * (w * k + c) + 1] = others[c * width + r % width];
                }
            }
        }
    }
    return result;
}

/// The same sums for single rows, from contiguous vectors; also checks weighted sums against sums in long double.
std::vector<Sums> sums_of_lists(const Model& model, const WinnerLists& lists, const Rows<float>& rows) {
    const std::size_t d = model.n_features, k = model.counts.size();
    const WinnerKernelSum& sums = lists.sums;
    std::vector<Sums> result(rows.size(), Sums(2 * k * k));
    for (std::size_t r = 0; r < rows.size(); ++r) {
        std::vector<float> u(row_stride(d)), values(model.n_sv + 4 * tile_rows + 2 * lanes);
        std::copy(rows[r].begin(), rows[r].end(), u.begin());
        const float half_sq_norm = half_sq_norm_row(model.kernels(), u.data(), d);
        const auto part = [&](std::size_t a, std::size_t c) {
            const std::size_t first = sums.others_of[a * k + c], end = sums.others_of[a * k + c + 1];
            kernels_of_list(model.kernels(), sums.rows, sums.others, first, end, u.data(), half_sq_norm, values.data());
            const auto value_at = [&](std::size_t n, const float*) { return values.data() + (n - first * tile_rows); };
            const PartOfPair found = part_of_list<true>(sums.others, first, end, 0.25, value_at);
            EXPECT(part_of_list<false>(sums.others, first, end, 0.25, value_at).sum == found.sum,
                   "weights change sums");
            long double weighted = 0;
            for (std::size_t n = first * tile_rows; n < end * tile_rows; ++n) {
                weighted += static_cast<long double>(sums.others.coef[n]) * values[n - first * tile_rows] *
                            (0.25L + sums.others.half_sq_norms[n]);
            }
            EXPECT(std::fabs(found.weighted - weighted) <= 1e-12L * std::fabs(weighted), "weighted sum");
            return found.sum;
        };
        for (std::size_t w = 0; w < k; ++w) {
            for (std::size_t c = 0; c < k; ++c) {
                if (c == w) continue;
                result[r][2 * (w * k + (c < w ? c : c - 1))] = part(c, w);
                result[r][2 * (w * k + c) + 1] = part(w, c);
            }
        }
    }
    return result;
}

/// Checks every sum against the engine's bound plus listed_depth roundings, and against its pair's moduli.
void judge_winner(const Model& model, const Reference& truth, const Sums& sums) {
    const std::size_t k = model.counts.size();
    for (std::size_t w = 0; w < k; ++w) {
        for (std::size_t c = 0; c < k; ++c) {
            if (c == w) continue;
            const std::size_t mine[] = {w * k + (c < w ? c : c - 1), c * k + (w < c ? w : w - 1)};
            const double found[] = {sums[2 * mine[0]], sums[2 * (w * k + c) + 1]};
            for (int side = 0; side < 2; ++side) {
                const std::size_t f = mine[side];
                const long double bound = error_bound(model, truth, f, inner_product_depth(model.n_features)) +
                                          1.01L * listed_depth * 0x1p-24L * truth.moduli[f] +
                                          model.counts[f / k] * 0x1p-58L * truth.largest[f];
                const long double error = std::fabs(found[side] - truth.sums[f]);
                EXPECT(error <= bound, "a sum of the pair (" + std::to_string(w) + ", " + std::to_string(c) +
                                           "), side " + std::to_string(side) + ", is off by " + check::show(error) +
                                           ", bound " + check::show(bound));
                EXPECT(std::fabs(std::fabs(found[side]) - truth.moduli[f]) <= bound, "sums are no moduli");
            }
        }
    }
}

/// A network with random weights: for each class, a constant and one weight per feature and per landmark.
struct Network {
    std::size_t n_classes, d;
    std::vector<double> weights;  // of shape (1 + d + n_landmarks, n_classes)
    std::vector<std::size_t> landmarks;
    std::vector<char> memory;
    Speculation speculation;

    Network(const Model& model, const WinnerLists& lists, std::size_t n_landmarks, Random& random)
        : n_classes(model.counts.size()), d(model.n_features), weights((1 + d + n_landmarks) * n_classes) {
        Arena counter(nullptr);
        const SpeculationMemory counted(n_classes, d, n_landmarks, counter);
        memory.assign(counter.bytes_anywhere(), '\xff');
        Arena arena(memory.data());
        SpeculationWriter writer(model.kernels(), SpeculationMemory(n_classes, d, n_landmarks, arena), n_classes);
        std::normal_distribution<double> normal;
        for (double& weight : weights) weight = static_cast<double>(static_cast<float>(normal(random)));
        for (std::size_t c = 0; c < n_classes; ++c) {
            writer.set_constant(c, weights[c]);
            for (std::size_t j = 0; j < d; ++j) writer.set_weight(c, j, weights[(1 + j) * n_classes + c]);
        }
        for (std::size_t m = 0; m < n_landmarks; ++m) {
            landmarks.push_back(random() % model.n_sv);
            const double* const first = weights.data() + (1 + d + m) * n_classes;
            const std::vector<float> of_landmark(first, first + n_classes);
            writer.add_landmark(lists.lane_of[landmarks[m]], of_landmark.data());
        }
        speculation = writer.speculation();
    }
    std::vector<double> scores(const std::vector<float>& row, const Reference& truth) const {
        std::vector<double> score(weights.begin(), weights.begin() + static_cast<std::ptrdiff_t>(n_classes));
        for (std::size_t c = 0; c < n_classes; ++c) {
            for (std::size_t j = 0; j < d; ++j)
                score[c] += weights[(1 + j) * n_classes + c] * static_cast<double>(row[j]);
            for (std::size_t m = 0; m < landmarks.size(); ++m)
                score[c] += weights[(1 + d + m) * n_classes + c] * static_cast<double>(truth.kernel[landmarks[m]]);
        }
        return score;
    }
};

}  // namespace

TEST(the_pairs_of_one_class) {
    Random random(7);
    for (std::size_t n_classes = 2; n_classes <= 9; ++n_classes) {
        for (const Counts& counts : class_sizes(random, n_classes)) {
            const std::size_t d = n_classes == 3 ? 65 : 1 + random() % 6;
            const Model model = with_uniform_signs(random_model<AllPairs<float>>(random, counts, d, 6));
            const WinnerLists lists(model);
            EXPECT(lists.is_usable, "signs are uniform");
            const Rows<float> rows = random_rows(random, model, 1 + random() % 50);
            const auto three = winner_sums<3>(model, lists, rows), one = winner_sums<1>(model, lists, rows);
            const auto alone = sums_of_lists(model, lists, rows);
            for (std::size_t r = 0; r < rows.size(); ++r) {
                EXPECT(same(three[r], one[r]), "a block's width changes a result");
                if (r % 7 != 0) continue;
                judge_winner(model, reference(model, rows[r]), three[r]);
                judge_winner(model, reference(model, rows[r]), alone[r]);
            }
        }
    }
}

TEST(pairs_that_float32_cannot_add_up_have_no_lists) {
    Random random(8);
    const Model model = with_uniform_signs(random_model<AllPairs<float>>(random, {9, 9, 9}, 3));
    EXPECT(WinnerLists(model).is_usable, "signs are uniform");
    std::size_t n_refused = 0;
    for (std::size_t k = 0; k < model.coef.size(); ++k) {
        if (model.coef[k] == 0) continue;
        for (const double factor : {-1.0, 0x1p-120, 0x1p120}) {
            std::vector<double> coef = model.coef;
            coef[k] *= factor;
            EXPECT(!WinnerLists(Model(model.counts, model.vectors, coef, 3, model.half_theta)).is_usable,
                   "a coefficient times " + check::show(factor) + " is listed");
            ++n_refused;
        }
    }
    EXPECT(n_refused > 60, "too few coefficients");
}

TEST(the_network_speculates_the_best_score) {
    Random random(9);
    for (const std::size_t n_landmarks : {0u, 1u, 7u, 8u, 9u, 70u}) {
        for (const std::size_t n_classes : {2u, 3u, 8u, 17u}) {
            const Counts counts(n_classes, 11);
            const Model model = with_uniform_signs(random_model<AllPairs<float>>(random, counts, 5));
            const Network network(model, WinnerLists(model), n_landmarks, random);
            const Rows<float> rows = random_rows(random, model, 2 * lanes);
            const std::vector<float> block = blocks_of(rows, 5, 2 * lanes);
            std::vector<float> half_sq_norm(2 * lanes), scores(tiles_for(n_classes) * tile_rows * 2 * lanes);
            std::vector<std::uint32_t> speculated(2 * lanes);
            half_sq_norms_block<2>(model.kernels(), block.data(), half_sq_norm.data());
            speculated_classes_block<2>(model.kernels(), network.speculation, block.data(), half_sq_norm.data(),
                                        scores.data(), speculated.data());
            for (std::size_t r = 0; r < rows.size(); ++r) {
                const std::vector<double> score = network.scores(rows[r], reference(model, rows[r]));
                const double best = *std::max_element(score.begin(), score.end());
                EXPECT(score[speculated[r]] >= best - 1e-3, "another class has a better score");
            }
        }
    }
}

}  // namespace winner
