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
#include "exact_memory.hpp"
#include "prepared_model.hpp"

// Models and rows of two kinds for tests of kernels. One kind of numbers leaves no rounding anywhere but in
// exp, so that the answer must be right to the last bit; the other is random, with a bound made of roundings and sums
// of moduli.

namespace kernel_models {

using namespace approxsvm;
using artifact_writer::Terms;
using artifact_writer::terms_of;
using dispatch::TargetTable;
using Rows = std::vector<std::vector<double>>;
using Numbers = std::vector<double>;

/// As many rows in a call that none is taken alone, with one center.
constexpr std::size_t many_rows = 1000000;

/// Reports with the target in front.
inline void expect(bool holds, const TargetTable& kernels, const std::string& what) {
    if (!holds) check::report(__FILE__, __LINE__, std::string(kernels.name) + ": " + what);
}
inline bool same_bits(const double* a, const double* b, std::size_t n) {
    return n == 0 || std::memcmp(a, b, n * sizeof(double)) == 0;
}

// --- models ---

/// Coefficients anywhere in their ranges.
inline artifact_writer::Model random_model(std::size_t d, Random& random) {
    artifact_writer::Model model;
    model.input_scale = std::ldexp(1.0, static_cast<int>(random() % 9) - 4);
    model.output_scale = std::ldexp(1.0, static_cast<int>(random() % 41) - 20);
    model.gamma = uniform(random, 0.5, 1.999) * model.input_scale * model.input_scale;
    model.constant = uniform(random, -1, 1);
    for (std::size_t j = 0; j < d; ++j) {
        model.center.push_back(static_cast<float>(uniform(random, -3, 3)));
        model.linear.push_back(static_cast<float>(uniform(random, -1, 1)));
    }
    for (std::size_t k = 0; k < d * d; ++k) model.triangle.push_back(static_cast<float>(uniform(random, -2, 2)));
    return model;
}

/// Every product and sum is a small multiple of 1/64: no rounding anywhere but in exp.
inline artifact_writer::Model exact_model(std::size_t d, Random& random) {
    const auto quarters = [&](int highest) {
        return static_cast<float>(static_cast<int>(random() % static_cast<unsigned>(2 * highest + 1)) - highest) / 4;
    };
    artifact_writer::Model model;
    model.input_scale = model.gamma = 2.0;  // half_theta is 0.5
    model.intercept = 0.0;
    model.constant = 0.25;
    model.output_scale = 8.0;
    for (std::size_t j = 0; j < d; ++j) {
        model.center.push_back(quarters(20));
        model.linear.push_back(quarters(4));
    }
    for (std::size_t k = 0; k < d * d; ++k) model.triangle.push_back(quarters(8));
    return model;
}

inline std::vector<std::size_t> feature_counts() {
    std::vector<std::size_t> counts = {63, 64, 65, 257, 780};
    for (std::size_t d = 1; d <= 40; ++d) counts.push_back(d);
    for (std::size_t d = 122; d <= 130; ++d) counts.push_back(d);
    return counts;
}

/// An opened artifact, in memory of exactly its size.
struct Opened {
    Exact<unsigned char> memory;
    ModelView view;

    explicit Opened(const artifact_writer::Model& model) : memory(artifact_writer::written(model)) {
        CHECK_EQ(open_artifact(memory.data.get(), memory.size, view), Status::ok);
    }
};

// --- values ---

/// Values of rows, with a result of exact size, in a call of so many rows; 0 for as many as there are.
template <class AnyRows>
Status decide(const Prepared& prepared, const AnyRows& rows, Numbers& values, std::size_t n_rows_in_call = 0) {
    const Exact<double> room(rows.n_rows);
    const Request request{n_rows_in_call > 0 ? n_rows_in_call : rows.n_rows, Values::settled};
    std::uint64_t counts[n_stages] = {};
    const Status status =
        prepared.evaluate(rows, request, {{room.data.get(), room.size}, nullptr, nullptr, nullptr}, counts);
    values.assign(room.data.get(), room.data.get() + room.size);
    return status;
}

/// A value is off by no more than operations that each round to a relative error of `unit`, and exp to one of
/// `exp_error`. The depth of additions to the form is at most 2 d + 16 roundings long, that to the squared norm d + 20.
inline void expect_near(const artifact_writer::Model& model, const Terms& terms, double value, double unit,
                        double exp_error, double half_s_moduli, const TargetTable& kernels, const std::string& where) {
    const double d = static_cast<double>(model.n_features());
    const double depth = 2 * d + 16, form_unit = depth * unit / (1 - depth * unit);
    const double half_s = static_cast<double>(terms.half_s), moduli = static_cast<double>(terms.moduli);
    const double half_s_error = (d + 20) * unit * half_s_moduli;
    const double gaussian = std::exp(-half_s);
    const double gaussian_error = gaussian * (std::expm1(half_s_error) + exp_error * std::exp(half_s_error));
    double bound = gaussian_error * moduli * (1 + form_unit) + gaussian * form_unit * moduli;
    bound += gaussian * moduli * 0x1p-50;  // the last steps are in float64
    bound += 0x1p-140 * (1 + d * d);       // where products underflow
    if (half_s + half_s_error > 87.33 && half_s - half_s_error < 87.34) bound += gaussian * 2 * moduli;
    const long double expected = terms.value(model), error = std::fabs(value - expected);
    bound =
        model.output_scale * bound + 0x1p-52 * (std::fabs(model.intercept) + static_cast<double>(std::fabs(expected)));
    EXPECT(error <= bound, kernels,
           "d " + std::to_string(model.n_features()) + ", " + where + ": " + check::show(value) + " is off by " +
               check::show(error) + ", bound " + check::show(bound) + ", from " + check::show(expected));
}

}  // namespace kernel_models
