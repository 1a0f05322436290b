#include "kernel_models.hpp"

namespace kernel_models {

artifact_writer::Model random_model(std::size_t d, Random& random, std::uint32_t degree) {
    artifact_writer::Model model;
    artifact_writer::Expansion& expansion = model.expansions[0];
    model.degree = degree;
    model.input_scale = std::ldexp(1.0, static_cast<int>(random() % 9) - 4);
    expansion.output_scale = std::ldexp(1.0, static_cast<int>(random() % 41) - 20);
    model.gamma = uniform(random, 0.5, 1.999) * model.input_scale * model.input_scale;
    expansion.constant = uniform(random, -1, 1);
    for (std::size_t j = 0; j < d; ++j) {
        model.center.push_back(static_cast<float>(uniform(random, -3, 3)));
        expansion.linear.push_back(static_cast<float>(uniform(random, -1, 1)));
    }
    for (std::size_t k = 0; k < d * d; ++k) expansion.triangle.push_back(static_cast<float>(uniform(random, -2, 2)));
    for (int k = 3; k <= static_cast<int>(degree); ++k) {
        const std::size_t n = artifact_writer::monomials(0, d, k).size();
        for (std::size_t m = 0; m < n; ++m) expansion.higher.push_back(static_cast<float>(uniform(random, -6, 6)));
    }
    model.labels = artifact_writer::bytes_of(std::vector<std::int64_t>{1, -1});
    return model;
}

artifact_writer::Model exact_model(std::size_t d, Random& random) {
    const auto quarters = [&](int highest) {
        return static_cast<float>(static_cast<int>(random() % static_cast<unsigned>(2 * highest + 1)) - highest) / 4;
    };
    artifact_writer::Model model;
    artifact_writer::Expansion& expansion = model.expansions[0];
    model.input_scale = 2.0;
    model.gamma = 2.0;  // half_theta is 0.5
    model.intercept = 0.0;
    expansion.constant = 0.25;
    expansion.output_scale = 8.0;
    for (std::size_t j = 0; j < d; ++j) {
        model.center.push_back(quarters(20));
        expansion.linear.push_back(quarters(4));
    }
    for (std::size_t k = 0; k < d * d; ++k) expansion.triangle.push_back(quarters(8));
    model.labels = artifact_writer::bytes_of(std::vector<std::int64_t>{1, -1});
    return model;
}

double bound_of(const artifact_writer::Model& model, const Terms& terms, double unit, double exp_error,
                double half_s_moduli) {
    const double d = static_cast<double>(model.n_features());
    const double path = std::max(2u, model.degree) * d + 16, form_unit = path * unit / (1 - path * unit);
    const double half_s = static_cast<double>(terms.half_s), moduli = static_cast<double>(terms.moduli);
    const double half_s_error = (d + 20) * unit * half_s_moduli;
    const double gaussian = std::exp(-half_s);
    const double gaussian_error = gaussian * (std::expm1(half_s_error) + exp_error * std::exp(half_s_error));
    double error = gaussian_error * moduli * (1 + form_unit) + gaussian * form_unit * moduli;
    error += gaussian * moduli * 0x1p-50;  // the last steps are in float64
    error += 0x1p-140 * (1 + d * d);       // where products underflow
    if (half_s + half_s_error > 87.33 && half_s - half_s_error < 87.34) error += gaussian * 2 * moduli;
    const double value = static_cast<double>(terms.value(model));
    return model.expansions[terms.center].output_scale * error +
           0x1p-52 * (std::fabs(model.intercept) + std::fabs(value));
}

void expect_near(const artifact_writer::Model& model, const Terms& terms, double value, double bound,
                 const TargetTable& kernels, const std::string& where) {
    const double expected = static_cast<double>(terms.value(model));
    const double error = std::fabs(static_cast<double>(value - terms.value(model)));
    if (error <= bound) return;
    expect(false, kernels,
           "d " + std::to_string(model.n_features()) + ", " + where + ": " + check::show(value) + " is off by " +
               check::show(error) + ", bound " + check::show(bound) + ", from " + check::show(expected));
}

std::vector<Layout> layouts_of(std::size_t n_rows, std::size_t d) {
    const std::ptrdiff_t n = static_cast<std::ptrdiff_t>(n_rows), m = static_cast<std::ptrdiff_t>(d);
    return {{"C order", m, 1},
            {"F order", 1, n},
            {"rows backwards", -m, 1},
            {"columns backwards", m, -1},
            {"both backwards", -1, -n},
            {"padded rows", m + 3, 1},
            {"every second column", 2 * m, 2},
            {"F order, padded", 1, n + 5}};
}

Rows random_rows(const artifact_writer::Model& model, std::size_t n_rows, Random& random) {
    const std::size_t d = model.n_features();
    const double half_theta = model.gamma / model.input_scale / model.input_scale;
    Rows rows;
    for (std::size_t i = 0; i < n_rows; ++i) {
        const double half_s = i % 6 == 5 ? uniform(random, 80, 120) : uniform(random, 0, 4);
        const double radius = std::sqrt(3 * half_s / half_theta / static_cast<double>(d));
        std::vector<double> row(d);
        for (std::size_t j = 0; j < d; ++j) {
            const double u = i == 0 ? 0 : radius * uniform(random, -1, 1);
            row[j] = i == 1 ? 0 : static_cast<double>(model.center[j]) + u / model.input_scale;
        }
        rows.push_back(row);
    }
    return rows;
}

Rows exact_rows(const artifact_writer::Model& model, std::size_t n_rows, Random& random) {
    Rows rows;
    for (std::size_t i = 0; i < n_rows; ++i) {
        std::vector<double> row;
        for (const float center : model.center) {
            row.push_back(static_cast<double>(center) + (static_cast<double>(random() % 5) - 2) / 8);
        }
        rows.push_back(row);
    }
    return rows;
}

std::vector<std::size_t> feature_counts() {
    std::vector<std::size_t> counts;
    for (std::size_t d = 1; d <= 40; ++d) counts.push_back(d);
    for (std::size_t d = 63; d <= 65; ++d) counts.push_back(d);
    for (std::size_t d = 122; d <= 130; ++d) counts.push_back(d);
    counts.push_back(257);
    counts.push_back(780);
    return counts;
}

}  // namespace kernel_models
