#include "artifact_models.hpp"

namespace artifact_models {

void add_router(artifact_writer::Model& model, const std::vector<std::vector<std::uint32_t>>& lists,
                const std::vector<std::uint32_t>& heads) {
    artifact_writer::Router& router = model.router;
    router = {};
    router.n_groups = static_cast<std::uint32_t>(lists.size());
    const auto padded = [](std::vector<std::uint32_t> slots) {
        while (slots.size() % 16 != 0) slots.push_back(slots.back());
        return slots;
    };
    router.starts = {0};
    for (const std::vector<std::uint32_t>& list : lists) {
        const std::vector<std::uint32_t> slots = padded(list);
        router.members.insert(router.members.end(), slots.begin(), slots.end());
        router.starts.push_back(static_cast<std::uint32_t>(router.members.size() / 16));
    }
    router.n_panels = router.starts.back();
    const auto add_panels = [&](const std::vector<std::uint32_t>& slots) {
        const auto x = [&](std::uint32_t c, std::size_t j) {
            return (static_cast<double>(model.center_of(c)[j]) - static_cast<double>(model.center[j])) *
                   model.input_scale;
        };
        for (std::size_t first = 0; first < slots.size(); first += 16) {
            for (std::size_t lane = 0; lane < 16; ++lane) {
                double half_sq_norm = 0;
                for (std::size_t j = 0; j < model.n_features(); ++j) {
                    half_sq_norm += 0.5 * x(slots[first + lane], j) * x(slots[first + lane], j);
                }
                router.panels.push_back(static_cast<float>(half_sq_norm));
            }
            for (std::size_t j = 0; j < model.n_features(); ++j) {
                for (std::size_t lane = 0; lane < 16; ++lane) {
                    router.panels.push_back(static_cast<float>(-x(slots[first + lane], j)));
                }
            }
        }
    };
    add_panels(padded(heads));
    add_panels(router.members);
}

void add_router(artifact_writer::Model& model, std::uint32_t n_groups) {
    std::vector<std::vector<std::uint32_t>> lists(n_groups);
    std::vector<std::uint32_t> heads;
    for (std::uint32_t c = 0; c < model.expansions.size(); ++c) lists[c % n_groups].push_back(c);
    for (std::uint32_t g = 0; g < n_groups; ++g) heads.push_back(g);
    add_router(model, lists, heads);
}

artifact_writer::Model approximate_model(std::size_t d, std::uint32_t degree, std::size_t n_centers) {
    artifact_writer::Model model;
    model.degree = degree;
    model.expansions.resize(n_centers);
    for (std::size_t j = 0; j < d; ++j) {
        model.center.push_back(0.25f * static_cast<float>(j));
        model.feature_names.push_back("x\xC3\xA9" + std::to_string(j));
    }
    for (std::size_t c = 0; c < n_centers; ++c) {
        artifact_writer::Expansion& expansion = model.expansions[c];
        for (std::size_t j = 0; j < d; ++j) {
            expansion.center.push_back(static_cast<float>(j) - static_cast<float>(c));
            expansion.linear.push_back(j % 2 == 0 ? 1.0f : -0.75f);
        }
        for (std::size_t k = 0; k < d * d; ++k) expansion.triangle.push_back(k % 3 == 0 ? 2.0f : -0.5f);
        for (int k = 3; k <= static_cast<int>(degree); ++k) {
            const std::size_t n = artifact_writer::monomials(0, d, k).size();
            for (std::size_t m = 0; m < n; ++m) expansion.higher.push_back(m % 3 == 0 ? 720.0f : -100.0f);
        }
    }
    if (n_centers > 1) add_router(model, n_centers > 2 ? 2 : 1);
    model.labels = bytes_of(std::vector<std::int64_t>{3, -4});
    artifact_writer::add_check_rows(model, n_centers > 1 ? 3 : 2);
    return model;
}

void drop_labels(artifact_writer::Model& model, std::uint32_t task) {
    model.task = task;
    model.n_labels = model.label_kind = 0;
    model.labels.clear();
}

double largest_of(const std::vector<double>& numbers) {
    double largest = 0;
    for (const double number : numbers) largest = std::max(largest, std::fabs(number));
    return largest;
}

std::vector<float> triangle_of(const std::vector<double>& matrix, std::size_t d, double scale) {
    std::vector<float> result(d * d);
    for (std::size_t j = 0; j < d; ++j) {
        for (std::size_t k = j; k < d; ++k) {
            result[j * d + k] = static_cast<float>(matrix[j * d + k] / scale * (j == k ? 1 : 2));
        }
    }
    return result;
}

double monomial_factor(const std::vector<std::size_t>& variables, double theta) {
    double factor = 1;
    std::size_t times = 1;
    for (std::size_t k = 0; k < variables.size(); ++k) {
        times = k > 0 && variables[k] == variables[k - 1] ? times + 1 : 1;
        factor *= theta / static_cast<double>(times);
    }
    return factor;
}

void expand(artifact_writer::Model& model, std::size_t c) {
    const std::vector<std::uint32_t> columns = model.varying_columns();
    const std::size_t d = columns.size(), n_sv = model.dual_coef.size();
    const double theta = 2 * model.gamma / model.input_scale / model.input_scale;
    artifact_writer::Expansion& expansion = model.expansions[c];
    std::vector<double> linear(d), quadratic(d * d), direction(d * d), weights(n_sv), higher;
    std::vector<std::vector<double>> u(n_sv, std::vector<double>(d));
    expansion.constant = 0;
    double largest_sq_norm = 0;
    for (std::size_t i = 0; i < n_sv; ++i) {
        double sq_norm = 0;
        for (std::size_t j = 0; j < model.n_features(); ++j) {
            const double from = static_cast<double>(model.center_of(c)[j]);
            const double off = (model.support_vectors[i][j] - from) * model.input_scale;
            sq_norm += off * off;
        }
        for (std::size_t j = 0; j < d; ++j) {
            const double from = static_cast<double>(model.center_of(c)[columns[j]]);
            u[i][j] = (model.support_vectors[i][columns[j]] - from) * model.input_scale;
        }
        largest_sq_norm = std::max(largest_sq_norm, sq_norm);
        weights[i] = model.dual_coef[i] * std::exp(-theta / 2 * sq_norm);
        expansion.constant += weights[i];
        for (std::size_t j = 0; j < d; ++j) {
            linear[j] += weights[i] * theta * u[i][j];
            for (std::size_t k = 0; k < d; ++k)
                quadratic[j * d + k] += weights[i] * theta * theta / 2 * u[i][j] * u[i][k];
        }
    }
    expansion.max_sv_norm = std::sqrt(largest_sq_norm) / model.input_scale * (1 + 1e-12);
    for (int k = 3; k <= static_cast<int>(model.degree); ++k) {
        for (const std::vector<std::size_t>& variables : artifact_writer::monomials(0, d, k)) {
            double sum = 0;
            for (std::size_t i = 0; i < n_sv; ++i) {
                double product = weights[i];
                for (const std::size_t j : variables) product *= u[i][j];
                sum += product;
            }
            higher.push_back(sum * monomial_factor(variables, theta));
        }
    }
    double scale = std::max(power_of_two_above(std::fabs(expansion.constant)), power_of_two_above(largest_of(linear)));
    scale = std::max({scale, power_of_two_above(largest_of(quadratic)), power_of_two_above(largest_of(higher) / 2)});
    expansion.output_scale = scale;
    expansion.constant /= scale;
    expansion.linear.clear();
    for (const double number : linear) expansion.linear.push_back(static_cast<float>(number / scale));
    expansion.triangle = triangle_of(quadratic, d, scale);
    expansion.higher.clear();
    for (const double number : higher) expansion.higher.push_back(static_cast<float>(number / scale));
    expansion.coefficient_error = 1e-12 * model.sum_moduli;
    expansion.direction_scale = expansion.direction_trace = expansion.direction_error = 0;
    if (model.degree != 2) return;
    for (std::size_t i = 0; i < n_sv; ++i) {
        for (std::size_t l = 0; l < n_sv; ++l) {
            double product = 0;
            for (std::size_t j = 0; j < d; ++j) product += u[i][j] * u[l][j];
            double factor = 0, part = theta * theta * theta / 6 * weights[i] * weights[l] * product * product;
            for (std::uint32_t k = 4; k <= model.first_remainder_degree; ++k) {
                factor += part;
                part *= theta * product / (2.0 * k);
            }
            for (std::size_t j = 0; j < d; ++j) {
                for (std::size_t k = 0; k < d; ++k) direction[j * d + k] += factor * u[i][j] * u[l][k];
            }
        }
    }
    double trace = 0;
    for (std::size_t j = 0; j < d; ++j) trace += direction[j * d + j];
    expansion.direction_scale = power_of_two_above(largest_of(direction));
    expansion.direction = triangle_of(direction, d, expansion.direction_scale);
    expansion.direction_trace = trace * (1 + 1e-9);
    expansion.direction_error = 1e-9 * trace;
}

artifact_writer::Model true_model(std::uint32_t mode, std::size_t d, std::size_t n_sv, std::uint64_t seed,
                                  std::uint32_t degree, std::size_t n_centers,
                                  const std::vector<std::uint32_t>& varying) {
    std::mt19937_64 random(seed);
    artifact_writer::Model model;
    model.mode = mode;
    model.labels = bytes_of(std::vector<std::int64_t>{3, -4});
    const double width = std::sqrt(static_cast<double>(d));  // keeps gamma ||x - z||^2 about 1
    model.input_scale = std::ldexp(1.0, -std::ilogb(width));
    model.gamma = 0.75 * model.input_scale * model.input_scale;
    for (std::size_t j = 0; j < d; ++j) {
        model.center.push_back(0.125f * static_cast<float>(random() % 5));
        model.feature_names.push_back("x" + std::to_string(j));
    }
    double sum_moduli = 0, sq_norm = 0, sq_norm_origin = 0;
    for (std::size_t i = 0; i < n_sv; ++i) {
        model.dual_coef.push_back((i % 2 == 0 ? 1 : -1) * (0.5 + static_cast<double>(random() % 100) / 64));
        sum_moduli += std::fabs(model.dual_coef[i]);
        std::vector<double> vector;
        double from_center = 0, from_origin = 0;
        for (std::size_t j = 0; j < d; ++j) {
            vector.push_back(random() % 3 == 0 ? 0 : (static_cast<double>(random() % 9) - 4) / 4);
            from_center += std::pow(vector[j] - static_cast<double>(model.center[j]), 2);
            from_origin += vector[j] * vector[j];
        }
        sq_norm = std::max(sq_norm, from_center);
        sq_norm_origin = std::max(sq_norm_origin, from_origin);
        model.support_vectors.push_back(vector);
    }
    model.max_sv_norm = std::sqrt(sq_norm) * (1 + 1e-12);
    model.max_sv_norm_origin = std::sqrt(sq_norm_origin) * (1 + 1e-12);
    // Every part of the function, and the whole, has a norm of at most sum |a_i|.
    model.sum_moduli = sum_moduli * (1 + 1e-12);
    model.total_norm = 0;
    model.degree = degree;
    model.varying = varying;
    model.expansions.resize(n_centers);
    if (mode == artifact_writer::certified) {
        model.total_norm = model.sum_moduli;
        for (std::size_t c = 0; c < n_centers; ++c) {
            artifact_writer::Expansion& expansion = model.expansions[c];
            for (std::size_t j = 0; j < d; ++j) {
                expansion.center.push_back(0.125f * static_cast<float>(static_cast<int>(random() % 17) - 8));
            }
            std::fill(expansion.norms.begin(), expansion.norms.end(), model.sum_moduli);
            expansion.remainder = model.sum_moduli;
            expand(model, c);
        }
        if (n_centers > 1) add_router(model, n_centers > 8 ? 3 : 1);
        artifact_writer::add_check_rows(model, n_centers > 1 ? 4 : 2);
    }
    artifact_writer::add_exact_check_rows(model, 2);
    return model;
}

std::vector<double> form_of(const artifact_writer::Model& model) {
    const std::size_t d = model.n_features();
    const double gamma = model.gamma, coef0 = model.coef0;
    double constant = model.intercept;
    std::vector<double> linear(d), square(d * d);
    for (std::size_t i = 0; i < model.dual_coef.size(); ++i) {
        const double a = model.dual_coef[i];
        const std::vector<double>& x = model.support_vectors[i];
        constant += a * (model.degree == 2 ? coef0 * coef0 : coef0);
        for (std::size_t j = 0; j < d; ++j) {
            linear[j] += a * gamma * x[j] * (model.degree == 2 ? 2 * coef0 : 1);
            for (std::size_t k = j; k < d; ++k) square[j * d + k] += a * gamma * gamma * x[j] * x[k] * (j == k ? 1 : 2);
        }
    }
    const double error = 1e-13 * model.sum_moduli * static_cast<double>(d + 1);
    std::vector<double> form = {constant, error, error, model.degree == 2 ? error : 0};
    form.insert(form.end(), linear.begin(), linear.end());
    for (std::size_t p = 0; p < d && model.degree == 2; p += 8) {  // as packed() has it
        for (std::size_t column = p; column < d; ++column) {
            for (std::size_t row = p; row < p + 8 && row <= column; ++row) form.push_back(square[row * d + column]);
        }
    }
    return form;
}

artifact_writer::Model polynomial_model(std::uint32_t mode, std::uint32_t degree, std::size_t d, std::size_t n_sv,
                                        std::uint64_t seed) {
    artifact_writer::Model model = true_model(artifact_writer::exact, d, n_sv, seed);
    model.kernel = 1;
    model.mode = mode;
    model.degree = degree;
    model.gamma = -0.75;
    model.coef0 = 0.5;
    model.input_scale = 1.0;
    model.center.assign(d, 0.0f);
    model.center_kind = 0;
    model.expansions.clear();
    if (mode != artifact_writer::exact) model.form = form_of(model);
    artifact_writer::add_exact_check_rows(model, 2);
    return model;
}

artifact_writer::Model cosine_model(std::size_t d, std::size_t n, std::uint64_t seed, double scale) {
    artifact_writer::Model model = true_model(artifact_writer::exact, d, n, seed);
    model.kernel = 2;
    model.gamma = 0.0;
    model.input_scale = 1.0;
    model.center.assign(d, 0.0f);
    model.center_kind = 0;
    model.expansions.clear();
    model.sum_moduli = model.total_norm = 0.0;
    for (std::size_t j = 0; j < n; ++j) {
        double norm = 0.0;
        for (double& omega : model.support_vectors[j]) {
            omega *= scale;
            norm = std::hypot(norm, omega);
        }
        model.phases.push_back(6.25 * static_cast<double>(j * 37 % 64) / 64);
        model.sum_moduli += std::fabs(model.dual_coef[j]);
        model.total_norm += std::fabs(model.dual_coef[j]) * norm;
    }
    model.sum_moduli *= 1 + 1e-12;
    model.total_norm *= 1 + 1e-12;
    artifact_writer::add_exact_check_rows(model, 2, std::fmin(1.0, 1.0 / scale));
    return model;
}

Status with_labels(std::uint32_t kind, const Bytes& content) {
    artifact_writer::Model model = approximate_model();
    model.label_kind = kind;
    model.labels = content;
    return opened(artifact_writer::written(model));
}

}  // namespace artifact_models
