#pragma once

#include <algorithm>
#include <approxsvm/approxsvm.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "artifact_writer.hpp"

// Small artifacts of every mode, and what a reader says after one change to them.

namespace artifact_models {

using namespace approxsvm;
using artifact_writer::Bytes;
using artifact_writer::bytes_of;
using artifact_writer::ExactCopy;
using artifact_writer::get;
using artifact_writer::put;
using artifact_writer::seal;

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double nan64 = std::numeric_limits<double>::quiet_NaN();

/// The way to the centers of a model by lists of them and, for each list, the center that stands for it.
void add_router(artifact_writer::Model& model, const std::vector<std::vector<std::uint32_t>>& lists,
                const std::vector<std::uint32_t>& heads);

/// Centers in turn to each of some lists, the first of which stands for it.
void add_router(artifact_writer::Model& model, std::uint32_t n_groups);

/// Expansions whose coefficients lie at their limits, of nothing in particular.
artifact_writer::Model approximate_model(std::size_t d = 3, std::uint32_t degree = 2, std::size_t n_centers = 1);

void drop_labels(artifact_writer::Model& model, std::uint32_t task);

inline double power_of_two_above(double largest) {
    return largest > 0 ? std::ldexp(1.0, std::ilogb(largest) + 1) : 1.0;
}
double largest_of(const std::vector<double>& numbers);

/// The upper triangle of a symmetric matrix, entries off the diagonal doubled.
std::vector<float> triangle_of(const std::vector<double>& matrix, std::size_t d, double scale);

/// theta^k / k! times how often each monomial occurs: the factor of sum_i w_i u_a u_b ... in its coefficient.
double monomial_factor(const std::vector<std::size_t>& variables, double theta);

/// Coefficients about center number c, in the features that vary, and the matrix G for the direction.
void expand(artifact_writer::Model& model, std::size_t c);

/// A certified or exact model whose sections say the truth about its support vectors; a third of their values are zero
/// and all are multiples of 1/4. Many centers lie amid them; `varying` features make slices of the space.
artifact_writer::Model true_model(std::uint32_t mode, std::size_t d = 3, std::size_t n_sv = 5, std::uint64_t seed = 0,
                                  std::uint32_t degree = 2, std::size_t n_centers = 1,
                                  const std::vector<std::uint32_t>& varying = {});

/// Numbers of the form of a polynomial kernel of degree 1 or 2, as the format has them.
std::vector<double> form_of(const artifact_writer::Model& model);

/// A model with a polynomial kernel and the support vectors of a true_model.
artifact_writer::Model polynomial_model(std::uint32_t mode, std::uint32_t degree = 2, std::size_t d = 3,
                                        std::size_t n_sv = 5, std::uint64_t seed = 0);

/// A sum of n cosines, of frequencies that are multiples of 1/4 times `scale`.
artifact_writer::Model cosine_model(std::size_t d = 3, std::size_t n = 5, std::uint64_t seed = 0, double scale = 1.0);

/// One small model of every mode.
inline artifact_writer::Model small_model(std::uint32_t mode) {
    return mode == artifact_writer::approximate ? approximate_model() : true_model(mode);
}

constexpr std::uint32_t all_modes[] = {artifact_writer::approximate, artifact_writer::certified,
                                       artifact_writer::exact};

// --- what a reader says ---

inline Status opened(const Bytes& bytes, ModelView& model) {
    const ExactCopy copy(bytes);
    return open_artifact(copy.data(), bytes.size(), model);
}
inline Status opened(const Bytes& bytes) {
    ModelView model;
    return opened(bytes, model);
}

/// Status after one change to a valid artifact, with the checksum made right again.
template <class T>
Status with(std::size_t offset, T value, Bytes bytes = artifact_writer::written(approximate_model())) {
    put(bytes, offset, value);
    seal(bytes);
    return opened(bytes);
}

Status with_labels(std::uint32_t kind, const Bytes& content);

}  // namespace artifact_models
