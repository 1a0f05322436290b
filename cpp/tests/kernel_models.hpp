#pragma once

#include <algorithm>
#include <approxsvm/approxsvm.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "artifact_writer.hpp"
#include "check.hpp"
#include "kernels.hpp"
#include "predictor.hpp"
#include "row_forms.hpp"

// What kernels are tested with: models and rows of two kinds, and every form that rows may come in. One kind of numbers
// leaves no rounding anywhere but in exp, so that the answer must be right to the last bit; the other is random, with a
// bound made of roundings and sums of moduli.

namespace kernel_models {

using namespace approxsvm;
using artifact_writer::Bytes;
using artifact_writer::ExactCopy;
using artifact_writer::Terms;
using artifact_writer::terms_of;
using dispatch::Kernels;
using row_forms::Random;
using row_forms::uniform;

constexpr float infinite = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

template <class T>
std::uint64_t bits_of(T value) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    return bits;
}

/// Reports with the target and the sizes in front.
inline void expect(bool holds, const Kernels& kernels, const std::string& what) {
    if (!holds) check::report(__FILE__, __LINE__, std::string(kernels.name) + ": " + what);
}

// --- models ---

/// Coefficients anywhere in their ranges, rows at a distance where the Gaussian factor matters.
inline artifact_writer::Model random_model(std::size_t d, Random& random, std::uint32_t degree = 2) {
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

/// Every product and sum is a small multiple of 1/64: no rounding anywhere but in exp.
inline artifact_writer::Model exact_model(std::size_t d, Random& random) {
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

/// An artifact in memory of its exact size, opened.
struct Opened {
    Bytes bytes;
    ExactCopy memory;
    ModelView view;

    explicit Opened(artifact_writer::Model& model)
        : bytes((artifact_writer::add_check_rows(model, 2), artifact_writer::written(model))), memory(bytes) {
        CHECK_EQ(open_artifact(memory.data(), bytes.size(), view), Status::ok);
    }
};

// --- bounds ---

/// How much a decision value may be off when every operation rounds to a relative error of `unit` and exp to one of
/// `exp_error`. The path of additions
/// to the form is at most d for every degree, or 2 d, and 16 roundings long, that to the squared norm d + 20.
inline double bound_of(const artifact_writer::Model& model, const Terms& terms, double unit, double exp_error,
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

inline void expect_near(const artifact_writer::Model& model, const Terms& terms, double value, double bound,
                        const Kernels& kernels, const std::string& where) {
    const double expected = static_cast<double>(terms.value(model));
    const double error = std::fabs(static_cast<double>(value - terms.value(model)));
    if (error <= bound) return;
    expect(false, kernels,
           "d " + std::to_string(model.n_features()) + ", " + where + ": " + check::show(value) + " is off by " +
               check::show(error) + ", bound " + check::show(bound) + ", from " + check::show(expected));
}

// --- rows in every layout ---

struct Layout {
    const char* name;
    std::ptrdiff_t row_stride, column_stride;
};

inline std::vector<Layout> layouts_of(std::size_t n_rows, std::size_t d) {
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

/// Rows in a layout, in heap memory that starts at the first element used and ends behind the last. Elements between
/// are NaN.
template <class Real>
class Matrix {
  public:
    Matrix(const std::vector<std::vector<double>>& rows, std::size_t n_rows, const Layout& layout) {
        const std::ptrdiff_t n = static_cast<std::ptrdiff_t>(n_rows);
        const std::ptrdiff_t d = static_cast<std::ptrdiff_t>(rows.at(0).size());
        const std::ptrdiff_t by_rows = (n - 1) * layout.row_stride, by_columns = (d - 1) * layout.column_stride;
        const std::ptrdiff_t lowest = std::min<std::ptrdiff_t>(by_rows, 0) + std::min<std::ptrdiff_t>(by_columns, 0);
        const std::ptrdiff_t highest = std::max<std::ptrdiff_t>(by_rows, 0) + std::max<std::ptrdiff_t>(by_columns, 0);
        const std::size_t size = static_cast<std::size_t>(highest - lowest + 1);
        memory_.reset(new Real[size]);
        std::fill_n(memory_.get(), size, std::numeric_limits<Real>::quiet_NaN());
        Real* const origin = memory_.get() - lowest;
        for (std::ptrdiff_t i = 0; i < n; ++i) {
            for (std::ptrdiff_t j = 0; j < d; ++j) {
                origin[i * layout.row_stride + j * layout.column_stride] =
                    static_cast<Real>(rows[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)]);
            }
        }
        view_ = {origin, n_rows, layout.row_stride, layout.column_stride};
    }
    const DenseRows<Real>& view() const { return view_; }

  private:
    std::unique_ptr<Real[]> memory_;
    DenseRows<Real> view_;
};

using Rows = std::vector<std::vector<double>>;

/// A model prepared for a target, with a workspace, each of exactly the size asked for and at an address that suits
/// nothing; so many rows at once as a call has, which decides how they are taken.
class Prepared {
  public:
    Prepared(const Kernels& kernels, const ModelView& model)
        : memory_(new unsigned char[kernels.prepared_bytes(model) + 1]),
          prepared_(kernels.prepare(model, memory_.get() + 1)),
          workspace_(new unsigned char[kernels.workspace_bytes(prepared_) + 1]) {}

    template <class Rows>
    Status evaluate(dispatch::EvaluateFunction<Rows> function, const Rows& rows, std::size_t n_rows_in_call,
                    const Evaluation& out) const {
        std::uint64_t counts[n_stages] = {};
        return function(prepared_, rows, Request{n_rows_in_call, Values::settled}, out, counts, workspace_.get() + 1);
    }

    Status replay(const Kernels& kernels) const {
        const std::unique_ptr<unsigned char[]> memory(new unsigned char[kernels.replay_bytes(prepared_) + 1]);
        return kernels.replay(prepared_, memory.get() + 1);
    }

  private:
    std::unique_ptr<unsigned char[]> memory_;
    const void* prepared_;
    std::unique_ptr<unsigned char[]> workspace_;
};

/// As many rows in a call that none is taken alone, with one center.
constexpr std::size_t many_rows = 1000000;

inline bool same_bits(const std::vector<double>& a, const double* b) {
    return a.empty() || std::memcmp(a.data(), b, a.size() * sizeof(double)) == 0;
}

/// Values of whichever stage settles a row: tests of the stages look at those.
constexpr Request settled{0, Values::settled};

/// What a predictor says of some rows.
struct Answers {
    std::vector<double> values, bounds;
    std::vector<std::uint8_t> stages;
    dispatch::StageCounts counts{};

    explicit Answers(std::size_t n) : values(n, -1.0), bounds(n, -1.0), stages(n, 255) {}
    Evaluation out() { return {values, bounds, stages, nullptr}; }
    bool operator==(const Answers& other) const {
        return same_bits(values, other.values.data()) && same_bits(bounds, other.bounds.data()) &&
               stages == other.stages && counts == other.counts;
    }
};

/// Rows around the center: the center itself, the origin, then a sixth of them beyond the reach of the Gaussian factor.
inline Rows random_rows(const artifact_writer::Model& model, std::size_t n_rows, Random& random) {
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

/// Rows whose scaled coordinates are -1/2, -1/4, 0, 1/4 or 1/2.
inline Rows exact_rows(const artifact_writer::Model& model, std::size_t n_rows, Random& random) {
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

inline std::vector<std::size_t> feature_counts() {
    std::vector<std::size_t> counts;
    for (std::size_t d = 1; d <= 40; ++d) counts.push_back(d);
    for (std::size_t d = 63; d <= 65; ++d) counts.push_back(d);
    for (std::size_t d = 122; d <= 130; ++d) counts.push_back(d);
    counts.push_back(257);
    counts.push_back(780);
    return counts;
}

template <class Real>
std::vector<Real> narrowed(const std::vector<double>& row) {
    std::vector<Real> result;
    for (const double z : row) result.push_back(static_cast<Real>(z));
    return result;
}
// --- sparse rows ---

constexpr std::int64_t after_all = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t before_all = std::numeric_limits<std::int32_t>::min();

/// Rows in CSR, together with what they mean.
template <class Real, class Index>
struct Sparse {
    std::vector<Real> values;
    std::vector<Index> columns;
    std::vector<Index> row_starts = {0};
    std::vector<std::vector<Real>> seen;  // dense, n_features long
    std::vector<double> unseen_sq_norm;
    std::vector<std::size_t> n_seen;

    std::size_t n_rows() const { return row_starts.size() - 1; }

    void start_row(std::size_t d) {
        seen.emplace_back(d, Real{0});
        unseen_sq_norm.push_back(0);
        n_seen.push_back(0);
        row_starts.push_back(row_starts.back());
    }
    void add(std::int64_t column, Real value) {
        columns.push_back(static_cast<Index>(column));
        values.push_back(value);
        ++row_starts.back();
        if (column >= 0 && column < static_cast<std::int64_t>(seen.back().size())) {
            seen.back()[static_cast<std::size_t>(column)] = value;
            ++n_seen.back();
        } else {
            unseen_sq_norm.back() += static_cast<double>(value) * static_cast<double>(value);
        }
    }
};

}  // namespace kernel_models
