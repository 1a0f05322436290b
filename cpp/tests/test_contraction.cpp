#include <algorithm>
#include <approxsvm/approxsvm.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "check.hpp"
#include "row_forms.hpp"
#include "skip_target.hpp"

// Built with -ffp-contract=fast for a machine with fused multiply-add: values of every golden model stay within their
// bounds of the definition in long double, whatever the compiler fused (simd.hpp says why).

using namespace approxsvm;
using row_forms::Random;
using row_forms::uniform;

namespace {

/// An artifact in memory, prepared.
class GoldenModel {
  public:
    explicit GoldenModel(const std::filesystem::path& path) {
        std::ifstream file(path, std::ios::binary);
        bytes_.assign(std::istreambuf_iterator<char>(file), {});
        CHECK_EQ(open_artifact(bytes_.data(), bytes_.size(), view_), Status::ok);
        memory_.resize(prepared_bytes(view_));
        CHECK_EQ(prepare(view_, memory_, prepared_), Status::ok);
        std::vector<unsigned char> memory(replay_bytes(*prepared_));
        CHECK_EQ(replay(*prepared_, memory.data()), Status::ok);
        workspace_.resize(workspace_bytes(*prepared_));
        SupportVectorReader reader(view_);
        vectors_.assign(view_.n_sv, std::vector<double>(view_.n_features));
        for (std::vector<double>& vector : vectors_) reader.next(vector.data());
        if (view_.kernel == KernelKind::cosine) cosines_ = cosines_of(view_);
        for (std::size_t j = 0; j < cosines_.n; ++j) {
            const double* const omega = cosines_.frequencies + j * view_.n_features;
            vectors_.emplace_back(omega, omega + view_.n_features);
        }
    }
    const ModelView& view() const { return view_; }
    /// Support vectors or frequencies.
    const std::vector<std::vector<double>>& vectors() const { return vectors_; }

    template <class Real>
    Status evaluate(const std::vector<Real>& rows, const Evaluation& out, Values values) {
        return approxsvm::evaluate(*prepared_, rows, out, workspace_, values);
    }

    /// All decision values of a raw row, by the definition.
    template <class Real>
    std::vector<long double> exact(const Real* raw) const {
        const std::vector<long double> row = mapped({raw, raw + view_.n_raw_features});
        std::vector<long double> values(view_.n_decisions);
        for (std::size_t k = 0; k < values.size(); ++k) values[k] = view_.decisions[k].intercept;
        for (std::size_t i = 0; i < cosines_.n; ++i) {
            long double angle = cosines_.phases[i];
            for (std::size_t j = 0; j < view_.n_features; ++j) angle += vectors_[i][j] * row[j];
            values[0] += cosines_.coef[i] * std::cos(angle);
        }
        std::size_t c = 0, end = view_.n_labels > 2 ? view_.class_counts[0] : view_.n_sv;
        for (std::size_t i = 0; i < view_.n_sv; ++i) {
            while (i == end) end += view_.class_counts[++c];
            long double sq_distance = 0, product = 0;
            for (std::size_t j = 0; j < view_.n_features; ++j) {
                const long double x = vectors_[i][j], z = row[j];
                sq_distance += (x - z) * (x - z);
                product += x * z;
            }
            const long double kernel = is_of_products(view_)
                                           ? std::pow(view_.gamma * product + view_.coef0, view_.degree)
                                           : std::exp(-view_.gamma * sq_distance);
            if (view_.n_labels <= 2) {
                values[0] += view_.dual_coef[i] * kernel;
                continue;
            }
            for (std::size_t other = 0; other < view_.n_labels; ++other) {
                if (other == c) continue;
                const std::size_t pair = pair_position(view_.n_labels, std::min(c, other), std::max(c, other));
                values[pair] += view_.dual_coef[(other < c ? other : other - 1) * view_.n_sv + i] * kernel;
            }
        }
        return values;
    }

    /// A raw row through the model's input map.
    std::vector<long double> mapped(std::vector<long double> row) const {
        if (!view_.has_input_map) return row;
        std::vector<long double> x;
        for (std::size_t j = 0; j < view_.input_map.n_columns; ++j) x.push_back(row[view_.input_map.columns[j]]);
        for (const MapStage& stage : stages()) {
            const double* const* parts = stage.parts;
            if (stage.kind == StageKind::projection) {
                std::vector<long double> y(parts[part::bias], parts[part::bias] + stage.n_outputs);
                for (std::size_t j = 0; j < x.size(); ++j) {
                    for (std::size_t k = 0; k < y.size(); ++k) {
                        y[k] += (x[j] - parts[part::center][j]) * parts[part::matrix][j * y.size() + k];
                    }
                }
                x = y;
                continue;
            }
            if (stage.kind == StageKind::logarithm) {
                for (std::size_t j = 0; j < x.size(); ++j) {
                    const double offset = parts[0][j];
                    if (offset <= largest_double) x[j] = std::log(x[j] + offset);
                }
                continue;
            }
            for (std::size_t j = 0; j < x.size(); ++j) {
                if (parts[part::subtract]) x[j] -= parts[part::subtract][j];
                if (parts[part::multiply]) x[j] *= parts[part::multiply][j];
                if (parts[part::divide]) x[j] /= parts[part::divide][j];
                if (parts[part::add]) x[j] += parts[part::add][j];
                if (parts[part::low]) x[j] = std::max<long double>(x[j], parts[part::low][j]);
                if (parts[part::high]) x[j] = std::min<long double>(x[j], parts[part::high][j]);
            }
        }
        return x;
    }

    /// A raw row that the input map takes to about this row: exactly the inverse, but for limits and for projections,
    /// which are taken for parts of rotations.
    std::vector<double> unmapped(std::vector<double> x) const {
        if (!view_.has_input_map) return x;
        const std::vector<MapStage> all = stages();
        for (auto stage = all.rbegin(); stage != all.rend(); ++stage) {
            const double* const* parts = stage->parts;
            if (stage->kind == StageKind::projection) {
                std::vector<double> z(parts[part::center], parts[part::center] + stage->n_inputs);
                for (std::size_t j = 0; j < z.size(); ++j) {
                    for (std::size_t k = 0; k < x.size(); ++k) {
                        z[j] += (x[k] - parts[part::bias][k]) * parts[part::matrix][j * x.size() + k];
                    }
                }
                x = z;
                continue;
            }
            if (stage->kind == StageKind::logarithm) {
                for (std::size_t j = 0; j < x.size(); ++j) {
                    const double offset = parts[0][j];
                    if (offset <= largest_double) x[j] = std::exp(x[j]) - offset;
                }
                continue;
            }
            for (std::size_t j = 0; j < x.size(); ++j) {
                if (parts[part::add]) x[j] -= parts[part::add][j];
                if (parts[part::divide]) x[j] *= parts[part::divide][j];
                if (parts[part::multiply]) x[j] /= parts[part::multiply][j];
                if (parts[part::subtract]) x[j] += parts[part::subtract][j];
            }
        }
        std::vector<double> raw(view_.n_raw_features);
        for (std::size_t j = 0; j < x.size(); ++j) raw[view_.input_map.columns[j]] = x[j];
        return raw;
    }

    /// At most, of any support vector.
    template <class Real>
    double largest_kernel(const Real* raw) const {
        if (!is_of_products(view_)) return 1.0;
        const std::vector<long double> row = mapped({raw, raw + view_.n_raw_features});
        double sq_norm = 0;
        for (const long double x : row) sq_norm += static_cast<double>(x * x);
        const double reach = std::fabs(view_.gamma) * view_.max_sv_norm_origin * std::sqrt(sq_norm);
        return std::max(1.0, std::pow(reach + std::fabs(view_.coef0), view_.degree));
    }

  private:
    std::vector<MapStage> stages() const {
        std::vector<MapStage> all;
        for_stages(view_.input_map, [&](const MapStage& stage) { all.push_back(stage); });
        return all;
    }

    std::vector<char> bytes_;
    CosinesView cosines_{};
    ModelView view_;
    std::vector<unsigned char> memory_, workspace_;
    const PreparedModel* prepared_ = nullptr;
    std::vector<std::vector<double>> vectors_;
};

/// Support vectors, or frequencies, moved a little or a lot, and some of their coordinates left out.
template <class Real>
std::vector<Real> rows_around(const GoldenModel& model, std::size_t n_rows, Random& random) {
    std::vector<Real> rows;
    for (std::size_t i = 0; i < n_rows; ++i) {
        const std::vector<double>& vector = model.vectors()[random() % model.vectors().size()];
        const double gamma = model.view().kernel == KernelKind::cosine ? 1.0 : model.view().gamma;
        const double reach = std::ldexp(1.0, -static_cast<int>(random() % 16)) / std::sqrt(gamma);
        std::vector<double> moved;
        for (const double x : vector) {
            const double step = uniform(random, -reach, reach) / std::sqrt(static_cast<double>(vector.size()));
            moved.push_back(i % 5 == 4 && random() % 2 ? 0.0 : x + step);
        }
        for (const double x : model.unmapped(moved)) rows.push_back(static_cast<Real>(x));
    }
    return rows;
}

template <class Real>
void check_bounds(GoldenModel& model, std::size_t n_rows, Values wanted, const std::string& name, Random& random) {
    const std::size_t d = model.view().n_raw_features, n = model.view().n_decisions;
    const std::vector<Real> rows = rows_around<Real>(model, n_rows, random);
    std::vector<double> values(n_rows * n), bounds(n_rows * n);
    CHECK_EQ(model.evaluate(rows, {values, bounds, nullptr, nullptr}, wanted), Status::ok);
    for (std::size_t i = 0; i < n_rows; ++i) {
        const std::vector<long double> exact = model.exact(rows.data() + i * d);
        const double largest_kernel = model.largest_kernel(rows.data() + i * d);
        for (std::size_t k = 0; k < n; ++k) {
            // Long double rounds, too.
            const double slack =
                0x1p-60 * static_cast<double>(d + model.vectors().size()) * largest_kernel *
                (model.view().decisions[k].sum_moduli + std::fabs(model.view().decisions[k].intercept));
            const double error = static_cast<double>(std::fabs(values[i * n + k] - exact[k]));
            check::expect(error <= bounds[i * n + k] + slack,
                          name + ": off by " + check::show(error) + ", bound " + check::show(bounds[i * n + k]));
        }
    }
}

}  // namespace

TEST(the_compiler_contracts) {
    volatile double a = 1.0 + 0x1p-30, rounded = 1.0 + 0x1p-29;  // read when the program runs
    const double factor = a, subtracted = rounded;
    CHECK_EQ(factor * factor - subtracted, 0x1p-60);
}

TEST(bounds_hold_however_the_compiler_contracts) {
    static_assert(std::numeric_limits<long double>::digits > 60, "long double is the judge here");
    Random random(5);
    std::size_t n_models = 0;
    for (const auto& entry : std::filesystem::directory_iterator(APPROXSVM_GOLDEN_DIR)) {
        if (entry.path().extension() != ".asvm") continue;
        GoldenModel model(entry.path());
        if (model.vectors().empty()) continue;
        ++n_models;
        const std::string name = entry.path().filename().string();
        for (const Values wanted : {Values::settled, Values::exact}) {
            for (const std::size_t n_rows : {std::size_t{1}, std::size_t{4}, std::size_t{500}}) {
                check_bounds<float>(model, n_rows, wanted, name, random);
                check_bounds<double>(model, n_rows, wanted, name, random);
            }
        }
    }
    CHECK(n_models > 3);
}

TEST(rows_that_are_not_finite_are_found_however_the_compiler_contracts) {
    GoldenModel model(std::filesystem::path(APPROXSVM_GOLDEN_DIR) / "breast_cancer.asvm");
    std::vector<double> value(1);
    for (const double odd : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
        std::vector<double> row(model.view().n_raw_features, 0.5);
        row[3] = odd;
        CHECK_EQ(model.evaluate(row, {value, nullptr, nullptr, nullptr}, Values::promised), Status::not_finite);
    }
}
