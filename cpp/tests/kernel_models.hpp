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
#include "predictor.hpp"
#include "row_forms.hpp"
#include "target_table.hpp"

// What kernels are tested with: models and rows of two kinds, and every form that rows may come in. One kind of numbers
// leaves no rounding anywhere but in exp, so that the answer must be right to the last bit; the other is random, with a
// bound made of roundings and sums of moduli.

namespace kernel_models {

using namespace approxsvm;
using artifact_writer::Bytes;
using artifact_writer::ExactCopy;
using artifact_writer::Terms;
using artifact_writer::terms_of;
using dispatch::TargetTable;
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
inline void expect(bool holds, const TargetTable& kernels, const std::string& what) {
    if (!holds) check::report(__FILE__, __LINE__, std::string(kernels.name) + ": " + what);
}

// --- models ---

/// Coefficients anywhere in their ranges, rows at a distance where the Gaussian factor matters.
artifact_writer::Model random_model(std::size_t d, Random& random, std::uint32_t degree = 2);

/// Every product and sum is a small multiple of 1/64: no rounding anywhere but in exp.
artifact_writer::Model exact_model(std::size_t d, Random& random);

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
double bound_of(const artifact_writer::Model& model, const Terms& terms, double unit, double exp_error,
                double half_s_moduli);

void expect_near(const artifact_writer::Model& model, const Terms& terms, double value, double bound,
                 const TargetTable& kernels, const std::string& where);

// --- rows in every layout ---

struct Layout {
    const char* name;
    std::ptrdiff_t row_stride, column_stride;
};

std::vector<Layout> layouts_of(std::size_t n_rows, std::size_t d);

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
    Prepared(const TargetTable& kernels, const ModelView& model)
        : memory_(new unsigned char[kernels.prepared_bytes(model) + 1]),
          prepared_(kernels.prepare(model, memory_.get() + 1)),
          workspace_(new unsigned char[kernels.workspace_bytes(prepared_) + 1]) {}

    template <class Rows>
    Status evaluate(dispatch::EvaluateFunction<Rows> function, const Rows& rows, std::size_t n_rows_in_call,
                    const Evaluation& out) const {
        std::uint64_t counts[n_stages] = {};
        return function(prepared_, rows, Request{n_rows_in_call, Values::settled}, out, counts, workspace_.get() + 1);
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
Rows random_rows(const artifact_writer::Model& model, std::size_t n_rows, Random& random);

/// Rows whose scaled coordinates are -1/2, -1/4, 0, 1/4 or 1/2.
Rows exact_rows(const artifact_writer::Model& model, std::size_t n_rows, Random& random);

std::vector<std::size_t> feature_counts();

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
