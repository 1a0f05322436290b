#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "artifact_writer.hpp"

// Small artifacts whose sections say the truth.

namespace artifact_models {

/// The way to the centers of a model by lists of them and, for each list, the center that stands for it.
void add_router(artifact_writer::Model& model, const std::vector<std::vector<std::uint32_t>>& lists,
                const std::vector<std::uint32_t>& heads);

/// Centers in turn to each of some lists, the first of which stands for it.
void add_router(artifact_writer::Model& model, std::uint32_t n_groups);

/// A certified or exact model whose sections say the truth about its support vectors; a third of their values are zero
/// and all are multiples of 1/4. Many centers lie amid them; `varying` features make slices of the space.
artifact_writer::Model true_model(std::uint32_t mode, std::size_t d = 3, std::size_t n_sv = 5, std::uint64_t seed = 0,
                                  std::uint32_t degree = 2, std::size_t n_centers = 1,
                                  const std::vector<std::uint32_t>& varying = {});

}  // namespace artifact_models
