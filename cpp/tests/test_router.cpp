#include "parts.hpp"

// Tests of the router: it finds the nearest point, up to the lowest eight bits of a score, and an existing point for
// every row. Compiled once per target.

namespace router {

using namespace approxsvm;
using check::expect;

namespace {

using Points = std::vector<std::vector<double>>;

Points random_points(std::size_t n, std::size_t d, Random& random, double reach) {
    Points points(n, std::vector<double>(d));
    for (std::vector<double>& point : points) {
        for (double& x : point) x = uniform(random, -reach, reach);
    }
    return points;
}

/// Panels in memory of exactly their size; unused slots repeat the last point.
struct Panels {
    std::size_t d, n_panels;
    Points points;
    std::unique_ptr<float[]> memory;

    explicit Panels(Points all) : d(all[0].size()), n_panels(router_panels(all.size())), points(std::move(all)) {
        while (points.size() < n_panels * router_width) points.push_back(points.back());
        memory.reset(new float[n_panels * router_panel_floats(d)]);
        for (std::size_t i = 0; i < points.size(); ++i) {
            float* panel = memory.get() + i / router_width * router_panel_floats(d) + i % router_width;
            double half_sq_norm = 0;
            for (std::size_t j = 0; j < d; ++j) {
                half_sq_norm += 0.5 * points[i][j] * points[i][j];
                panel[(j + 1) * router_width] = static_cast<float>(-points[i][j]);
            }
            panel[0] = static_cast<float>(half_sq_norm);
        }
    }

    /// Returns ||x||^2 / 2 - x.y; `error` is how far rounding and the lowest eight bits may move it.
    double score(std::size_t i, const std::vector<float>& y, double& error) const {
        double total = 0, moduli = 0;
        for (std::size_t j = 0; j < d; ++j) {
            const double x = points[i][j], term = x * static_cast<double>(y[j]);
            total += 0.5 * x * x - term;
            moduli += 0.5 * x * x + std::fabs(term);
        }
        error = moduli * (static_cast<double>(d) + 4) * 0x1p-23 + std::fabs(total) * 0x1p-15 + 0x1p-120;
        return total;
    }
};

/// Routes as many rows as are routed together, in memory of exactly their size.
std::vector<std::size_t> slots_of(const Panels& panels, const std::vector<std::vector<float>>& rows) {
    const std::unique_ptr<float[]> y(new float[routed_rows * panels.d]);
    for (std::size_t r = 0; r < routed_rows; ++r) {
        std::copy(rows[r].begin(), rows[r].end(), y.get() + r * panels.d);
    }
    std::size_t slots[routed_rows];
    nearest_slots<routed_rows>(panels.memory.get(), panels.n_panels, panels.d, y.get(), panels.d, routed_rows, slots);
    return {slots, slots + routed_rows};
}

/// Routes the rows one by one.
std::vector<std::size_t> slots_alone(const Panels& panels, const std::vector<std::vector<float>>& rows) {
    std::vector<std::size_t> slots;
    for (const std::vector<float>& row : rows) {
        const std::unique_ptr<float[]> y(new float[panels.d]);
        std::copy(row.begin(), row.end(), y.get());
        nearest_slots<1>(panels.memory.get(), panels.n_panels, panels.d, y.get(), 0, 1, &slots.emplace_back());
    }
    return slots;
}

void expect_nearest(const Panels& panels, const std::vector<std::vector<float>>& rows,
                    const std::vector<std::size_t>& slots) {
    for (std::size_t r = 0; r < routed_rows; ++r) {
        EXPECT(slots[r] < panels.points.size(), "there is no slot " + std::to_string(slots[r]));
        if (slots[r] >= panels.points.size()) continue;
        double error, its_error;
        const double found = panels.score(slots[r], rows[r], its_error);
        for (std::size_t i = 0; i < panels.points.size(); ++i) {
            const double score = panels.score(i, rows[r], error);
            EXPECT(found - its_error <= score + error,
                   std::to_string(panels.n_panels) + " panels of " + std::to_string(panels.d) + " features: slot " +
                       std::to_string(slots[r]) + " has " + check::show(found) + ", slot " + std::to_string(i) +
                       " has " + check::show(score));
        }
    }
}

void check_nearest(const Panels& panels, Random& random, double reach) {
    for (int turn = 0; turn < 6; ++turn) {
        std::vector<std::vector<float>> rows(routed_rows, std::vector<float>(panels.d));
        for (std::vector<float>& row : rows) {
            const std::vector<double>& near = panels.points[random() % panels.points.size()];
            for (std::size_t j = 0; j < panels.d; ++j) {
                row[j] = static_cast<float>(turn == 0 ? near[j] : uniform(random, -reach, reach));
            }
        }
        expect_nearest(panels, rows, slots_of(panels, rows));
        expect_nearest(panels, rows, slots_alone(panels, rows));
    }
}

constexpr float inf32 = std::numeric_limits<float>::infinity(), nan32 = std::numeric_limits<float>::quiet_NaN();

/// A model with only the members read by a router: each group lists some panels of centers.
struct Routed {
    std::size_t d, n_centers;
    std::vector<std::uint32_t> starts, members;
    Panels groups, panels;
    ModelView view{};

    Routed(std::size_t n_features, const std::vector<std::size_t>& panels_of_group, Random& random, double reach)
        : d(n_features),
          n_centers(0),
          groups(random_points(panels_of_group.size(), n_features, random, reach)),
          panels(random_points(router_width * total(panels_of_group), n_features, random, reach)) {
        starts = {0};
        for (const std::size_t n : panels_of_group) starts.push_back(starts.back() + static_cast<std::uint32_t>(n));
        n_centers = panels.points.size();
        for (std::uint32_t k = 0; k < n_centers; ++k) members.push_back(static_cast<std::uint32_t>(n_centers) - 1 - k);
        view.n_features = d;
        view.n_centers = n_centers;
        view.router = {static_cast<std::uint32_t>(panels_of_group.size()),
                       starts.back(),
                       starts.data(),
                       members.data(),
                       groups.memory.get(),
                       panels.memory.get()};
    }

    static std::size_t total(const std::vector<std::size_t>& numbers) {
        std::size_t sum = 0;
        for (const std::size_t n : numbers) sum += n;
        return sum;
    }
};

}  // namespace

TEST(the_nearest_point_is_found) {
    Random random(1);
    for (const std::size_t d : std::vector<std::size_t>{1, 2, 3, 7, 8, 15, 16, 17, 40}) {
        for (const std::size_t n : std::vector<std::size_t>{1, 2, 15, 16, 17, 31, 32, 33, 48, 49, 80, 97}) {
            const double reach = std::exp2(uniform(random, -12, 12));
            check_nearest(Panels(random_points(n, d, random, reach)), random, reach);
        }
    }
}

TEST(every_slot_can_be_found) {
    Random random(3);
    for (const std::size_t n_panels : std::vector<std::size_t>{1, 2, 3, 5, 256}) {
        // Each point on a circle is nearest to itself.
        Points points;
        const std::size_t n = n_panels * router_width;
        for (std::size_t i = 0; i < n; ++i) {
            const double angle = 6.283185307179586 * static_cast<double>(i) / static_cast<double>(n);
            points.push_back({1e-3 * static_cast<double>(i % router_width == 0), std::cos(angle), std::sin(angle)});
        }
        // With 256 panels, the points are so close together that they differ only in the lowest eight bits of scores.
        if (n_panels == 256) continue;
        const Panels panels(points);
        for (std::size_t i = 0; i < n; ++i) {
            const std::vector<float> row(points[i].begin(), points[i].end());
            const std::vector<std::vector<float>> rows(routed_rows, row);
            for (const std::size_t slot : slots_of(panels, rows)) CHECK_EQ(slot, i);
            for (const std::size_t slot : slots_alone(panels, rows)) CHECK_EQ(slot, i);
        }
    }
}

TEST(a_row_is_routed_alone_as_among_others) {
    Random random(4);
    const Routed model(5, {1, 2, 3, 1, 7}, random, 2.0);
    for (int turn = 0; turn < 200; ++turn) {
        std::vector<float> rows(routed_rows * model.d);
        for (float& y : rows) y = static_cast<float>(uniform(random, -3, 3));
        std::size_t groups[routed_rows], centers[routed_rows];
        route_to_groups<routed_rows>(model.view, rows.data(), model.d, routed_rows, groups);
        for (std::size_t r = 0; r < routed_rows; ++r) {
            route_in_group<routed_rows>(model.view, groups[r], rows.data() + r * model.d, 0, 1, centers);
            CHECK_EQ(route(model.view, rows.data() + r * model.d), centers[0]);
        }
    }
}

TEST(any_row_gets_a_center_that_there_is) {
    Random random(5);
    const std::vector<float> odd = {nan32, -nan32, inf32, -inf32, 1e30f, -1e30f, 3.4e38f, -3.4e38f, 0.0f, 1e-45f, 1.0f};
    std::vector<std::size_t> many_groups(4096, 1), long_lists = {256, 1, 256};
    for (const std::vector<std::size_t>& lists : {std::vector<std::size_t>{1}, std::vector<std::size_t>{3},
                                                  std::vector<std::size_t>{1, 2, 3, 4, 5}, many_groups, long_lists}) {
        for (const double reach : {0.0, 1.0, 1e30, 3.4e38}) {
            const Routed model(lists.size() > 100 ? 1 : 4, lists, random, reach);
            for (std::size_t turn = 0; turn < 60; ++turn) {
                std::vector<float> rows(routed_rows * model.d, odd[turn % odd.size()]);
                for (float& y : rows) {
                    if (turn >= odd.size()) y = odd[random() % odd.size()];
                }
                std::size_t found[routed_rows];
                route_to_groups<routed_rows>(model.view, rows.data(), model.d, routed_rows, found);
                for (const std::size_t group : found) EXPECT(group < lists.size(), "no group " + std::to_string(group));
                const std::size_t group = random() % lists.size();
                route_in_group<routed_rows>(model.view, group, rows.data(), model.d, routed_rows, found);
                for (const std::size_t center : found) {
                    EXPECT(center < model.n_centers, "no center " + std::to_string(center));
                    const std::size_t slot = model.n_centers - 1 - center;
                    EXPECT(slot / router_width >= model.starts[group] && slot / router_width < model.starts[group + 1],
                           "a center of another group");
                }
                EXPECT(route(model.view, rows.data()) < model.n_centers, "no center for one row");
            }
        }
    }
}

TEST(points_that_are_not_finite_do_no_harm) {
    // A reader would reject such points. With them, sums overflow in either direction.
    Random random(6);
    for (const float odd : {inf32, -inf32, nan32, 3.4e38f, -3.4e38f}) {
        const Panels panels(random_points(3 * router_width, 4, random, 1.0));
        for (std::size_t k = 0; k < 3 * router_panel_floats(4); k += 3) panels.memory[k] = odd;
        for (const float y : {0.0f, 1.0f, -1.0f, inf32, nan32, 1e30f}) {
            for (const std::size_t slot :
                 slots_of(panels, std::vector<std::vector<float>>(routed_rows, {y, 0, y, 1}))) {
                CHECK(slot < panels.points.size());
            }
        }
    }
}

TEST(the_distance_to_a_slice_is_never_too_short) {
    // Squares that are all just below half an ulp of the first one: each is lost in the sum.
    ModelView model{};
    const std::uint32_t varying[] = {1};
    const DecisionNumbers decision{0.0, 1.0, 1.0, 0.0};
    model.varying = varying;
    model.n_varying = 1;
    model.half_theta = 0.5f;
    for (const std::size_t d : std::vector<std::size_t>{2, 100, 40000, 400000}) {
        constexpr std::size_t stride = lanes;
        model.n_features = d;
        for (const float first : {0x1p-6f, 0x1p-40f, 1e-23f, 0.0f, 3.0f}) {
            std::vector<float> row(d, first == 0.0f ? 0x1p-75f : 0.99f * std::sqrt(first * first * 0x1p-25f));
            row[0] = first;
            long double sq_distance = 0;
            for (std::size_t j = 0; j < d; ++j)
                sq_distance += j == 1 ? 0.0L : static_cast<long double>(row[j]) * row[j];
            std::vector<float> block(d * stride + 16, 0.0f);
            float* lanes_of = block.data();
            while (reinterpret_cast<std::uintptr_t>(lanes_of) % 64 != 0) ++lanes_of;
            for (std::size_t j = 0; j < d; ++j) lanes_of[j * stride] = row[j];
            float off_sq[stride];
            keep_varying<1>(model, lanes_of, off_sq);
            const long double truth = std::sqrt(sq_distance) < 1.4L ? std::sqrt(sq_distance) : 1.4L;
            CHECK(slice_slack(model, decision, off_sq[0]) >= truth);
            keep_varying<0>(model, row.data(), off_sq);
            CHECK(slice_slack(model, decision, off_sq[0]) >= truth);
        }
    }
}

}  // namespace router
