// Finds a center near a row in two steps: first the nearest of about sqrt(n_centers) groups, then the nearest center in
// that group. Every center yields a valid bound, and nearby ones yield small bounds, so the search need not be exact.
//
// A panel holds router_width points, one per lane: first ||x||^2 / 2 for each point, then the negated coordinates,
// feature by feature, where x = input_scale (point - model.center). The point nearest to y minimizes ||x||^2 / 2 - x.y.
#ifndef APPROXSVM_EXPANSION_ROUTER_HPP
#define APPROXSVM_EXPANSION_ROUTER_HPP

#include "../model_view.hpp"
#include "../simd/simd.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

constexpr std::size_t router_panel_floats(std::size_t n_features) {
    return router_width * (n_features + 1);
}
constexpr std::size_t router_panels(std::size_t n_points) {
    return (n_points + router_width - 1) / router_width;
}

// Number of rows routed together, and number of panels compared with them at a time. Eight independent sums keep the
// multiply-add units busy, and every loaded value is used more than once.
constexpr int routed_rows = lanes == 16 ? 4 : 2;
constexpr int routed_panels = lanes >= 8 ? 2 : 1;
constexpr int router_registers = static_cast<int>(router_width) / lanes;

// The best score so far in each lane; its lowest eight bits hold the panel's index.
template <int Rows>
struct BestScores {
    f32v score[Rows][router_registers];
};

// Compares rows with panels. If there are few sums, each is split into chains to hide the latency of multiply-adds; a
// single row has up to eight chains.
template <int Panels, int Rows>
APPROXSVM_INLINE void compare_with_panels(const float* panels, std::size_t first, std::size_t n_features,
                                          const float* y, std::size_t stride, BestScores<Rows>& best) {
    constexpr int chains = Rows == 1 ? 8 / (Panels * router_registers) : Panels < routed_panels ? 2 : 1;
    const std::size_t panel_floats = router_panel_floats(n_features);
    const float* x = panels + first * panel_floats;
    f32v sum[chains][Panels][Rows][router_registers];
    APPROXSVM_UNROLL for (int p = 0; p < Panels; ++p) {
        APPROXSVM_UNROLL for (int v = 0; v < router_registers; ++v) {
            const f32v half_sq_norm = load(x + static_cast<std::size_t>(p) * panel_floats + v * lanes);
            APPROXSVM_UNROLL for (int r = 0; r < Rows; ++r) {
                sum[0][p][r][v] = half_sq_norm;
                APPROXSVM_UNROLL for (int c = 1; c < chains; ++c) sum[c][p][r][v] = zero();
            }
        }
    }
    const auto add_feature = [&](std::size_t j, f32v(&to)[Panels][Rows][router_registers]) {
        x += router_width;
        f32v yj[Rows];
        APPROXSVM_UNROLL for (int r = 0; r < Rows; ++r) yj[r] = set1(y[static_cast<std::size_t>(r) * stride + j]);
        APPROXSVM_UNROLL for (int p = 0; p < Panels; ++p) {
            APPROXSVM_UNROLL for (int v = 0; v < router_registers; ++v) {
                const f32v xj = load(x + static_cast<std::size_t>(p) * panel_floats + v * lanes);
                APPROXSVM_UNROLL for (int r = 0; r < Rows; ++r) to[p][r][v] = fmadd(xj, yj[r], to[p][r][v]);
            }
        }
    };
    constexpr std::size_t step = static_cast<std::size_t>(chains);
    std::size_t j = 0;
    for (; chains > 1 && j + step <= n_features; j += step) {
        APPROXSVM_UNROLL for (int c = 0; c < chains; ++c) add_feature(j + static_cast<std::size_t>(c), sum[c]);
    }
    for (; j < n_features; ++j) add_feature(j, sum[0]);
    APPROXSVM_UNROLL for (int p = 0; p < Panels; ++p) {
        const std::uint32_t number = static_cast<std::uint32_t>(first) + static_cast<std::uint32_t>(p);
        APPROXSVM_UNROLL for (int r = 0; r < Rows; ++r) {
            APPROXSVM_UNROLL for (int v = 0; v < router_registers; ++v) {
                f32v score = sum[0][p][r][v];
                APPROXSVM_UNROLL for (int c = 1; c < chains; ++c) score = add(score, sum[c][p][r][v]);
                best.score[r][v] = min_or_nan(best.score[r][v], with_low_byte(score, number));
            }
        }
    }
}

// Finds the slot, router_width * panel + lane, of the best score, without branches; returns an arbitrary slot if some
// scores are NaN.
APPROXSVM_INLINE std::size_t best_slot(const f32v (&best)[router_registers], std::size_t n_panels) {
    float score[router_width];
    APPROXSVM_UNROLL for (int v = 0; v < router_registers; ++v) store(score + v * lanes, best[v]);
    float least = score[0];
    for (std::size_t i = 1; i < router_width; ++i) least = least < score[i] ? least : score[i];
    std::uint32_t lane = 0;
    for (std::uint32_t i = router_width; i-- > 0;) lane = score[i] == least ? i : lane;
    std::uint32_t bits;
    std::memcpy(&bits, score + lane, sizeof bits);
    const std::size_t panel = bits & 0xFF;
    return panel < n_panels ? panel * router_width + lane : 0;
}

// For each of the first n of Rows rows y, which are `stride` floats apart, finds the slot of the nearest point in these
// panels.
template <int Rows>
inline void nearest_slots(const float* panels, std::size_t n_panels, std::size_t n_features, const float* y,
                          std::size_t stride, std::size_t n, std::size_t* nearest) {
    BestScores<Rows> best;
    APPROXSVM_UNROLL for (int r = 0; r < Rows; ++r) {
        APPROXSVM_UNROLL for (int v = 0; v < router_registers; ++v) best.score[r][v] = set1(largest_float);
    }
    std::size_t p = 0;
    for (; p + routed_panels <= n_panels; p += routed_panels) {
        compare_with_panels<routed_panels>(panels, p, n_features, y, stride, best);
    }
    for (; p < n_panels; ++p) compare_with_panels<1>(panels, p, n_features, y, stride, best);
    APPROXSVM_COUNT_WORK(static_cast<double>(n * n_panels * router_width * n_features));
    for (std::size_t r = 0; r < n; ++r) nearest[r] = best_slot(best.score[r], n_panels);
}

// Finds the groups of the first n of Rows rows with coordinates y = input_scale (z - model.center). Rows is
// routed_rows, or 1 for a single row, whose sums may be rounded differently.
template <int Rows>
inline void route_to_groups(const ModelView& model, const float* y, std::size_t stride, std::size_t n,
                            std::size_t* groups) {
    const RouterView& router = model.router;
    nearest_slots<Rows>(router.groups, router_panels(router.n_groups), model.n_features, y, stride, n, groups);
    for (std::size_t r = 0; r < n; ++r) groups[r] = groups[r] < router.n_groups ? groups[r] : 0;
}

// Finds, in one group, the center nearest to each of the first n_rows of Rows rows.
template <int Rows>
inline void route_in_group(const ModelView& model, std::size_t group, const float* y, std::size_t stride,
                           std::size_t n_rows, std::size_t* centers) {
    const RouterView& router = model.router;
    const std::size_t first = router.starts[group], n = router.starts[group + 1] - first;
    const float* panels = router.panels + first * router_panel_floats(model.n_features);
    nearest_slots<Rows>(panels, n, model.n_features, y, stride, n_rows, centers);
    for (std::size_t r = 0; r < n_rows; ++r) centers[r] = router.members[first * router_width + centers[r]];
}

// Finds the center nearest to a single row.
inline std::size_t route(const ModelView& model, const float* y) {
    std::size_t found;
    route_to_groups<1>(model, y, 0, 1, &found);
    route_in_group<1>(model, found, y, 0, 1, &found);
    return found;
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif
