// Finds a center near a row in two steps: the nearest of about sqrt(n_centers) groups, then the nearest of its members.
// Any center gives a right answer with a right bound, a near one a small bound: nothing here needs to be exact.
//
// A panel holds router_width points, one lane each: half of ||x||^2 of all, then their negated coordinates, feature by
// feature, x = input_scale (point - model.center). The nearest point of y has the least ||x||^2 / 2 - x.y.
#pragma once

#include "model_view.hpp"
#include "simd.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

constexpr std::size_t router_width = 16;
constexpr std::size_t max_group_panels = 256;  // a panel's number is kept in eight bits

constexpr std::size_t router_panel_floats(std::size_t n_features) {
    return router_width * (n_features + 1);
}
constexpr std::size_t router_panels(std::size_t n_points) {
    return (n_points + router_width - 1) / router_width;
}

// The slot, router_width * panel + lane, of the nearest point of some panels; 0 where all scores are NaN.
inline std::size_t nearest_slot(const float* panels, std::size_t n_panels, std::size_t n_features, const float* y) {
    constexpr int registers = static_cast<int>(router_width) / lanes;
    f32v best[registers];
    APPROXSVM_UNROLL for (int v = 0; v < registers; ++v) best[v] = set1(largest_float);
    for (std::size_t p = 0; p < n_panels; ++p) {
        // Two sums each, over even and odd features: more of them on their way at a time.
        f32v even[registers], odd[registers];
        const float* x = panels + p * router_panel_floats(n_features);
        APPROXSVM_UNROLL for (int v = 0; v < registers; ++v) {
            even[v] = load(x + v * lanes);
            odd[v] = zero();
        }
        x += router_width;
        std::size_t j = 0;
        for (; j + 2 <= n_features; j += 2, x += 2 * router_width) {
            const f32v y0 = set1(y[j]), y1 = set1(y[j + 1]);
            APPROXSVM_UNROLL for (int v = 0; v < registers; ++v) {
                even[v] = fmadd(load(x + v * lanes), y0, even[v]);
                odd[v] = fmadd(load(x + router_width + v * lanes), y1, odd[v]);
            }
        }
        if (j < n_features) {
            const f32v y0 = set1(y[j]);
            APPROXSVM_UNROLL for (int v = 0; v < registers; ++v) even[v] = fmadd(load(x + v * lanes), y0, even[v]);
        }
        APPROXSVM_UNROLL for (int v = 0; v < registers; ++v) {
            best[v] = min_or_nan(best[v], with_low_byte(add(even[v], odd[v]), static_cast<std::uint32_t>(p)));
        }
    }
    float score[router_width];
    APPROXSVM_UNROLL for (int v = 0; v < registers; ++v) store(score + v * lanes, best[v]);
    std::size_t lane = 0;
    for (std::size_t i = 1; i < router_width; ++i) {
        if (score[i] < score[lane] || score[lane] != score[lane]) lane = i;
    }
    std::uint32_t bits;
    std::memcpy(&bits, score + lane, sizeof bits);
    const std::size_t panel = bits & 0xFF;
    return panel < n_panels ? panel * router_width + lane : 0;
}

// The number of a center near the row whose coordinates are y = input_scale (z - model.center).
inline std::size_t route(const ModelView& model, const float* y) {
    const RouterView& router = model.router;
    const std::size_t slot = nearest_slot(router.groups, router_panels(router.n_groups), model.n_features, y);
    const std::size_t group = slot < router.n_groups ? slot : 0;
    const std::size_t first = router.starts[group], n = router.starts[group + 1] - first;
    const float* panels = router.panels + first * router_panel_floats(model.n_features);
    return router.members[first * router_width + nearest_slot(panels, n, model.n_features, y)];
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm
