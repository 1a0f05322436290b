// Artifacts opened by every target that this machine can run.
#pragma once

#include <cstddef>
#include <random>
#include <vector>

#include "artifact_models.hpp"
#include "predictor.hpp"

namespace artifact_models {

/// Calls test(predictor) on all targets.
template <class Test>
void on_all_targets(const Bytes& bytes, const Test& test) {
    const ExactCopy copy(bytes);
    for (const dispatch::TargetTable* kernels : dispatch::runnable_targets()) {
        const dispatch::Predictor predictor(copy.data(), bytes.size(), *kernels);
        test(predictor);
    }
}

/// What a target says of an artifact, whose check rows it computes.
inline Status opened_by(const dispatch::TargetTable& kernels, const Bytes& bytes) {
    const ExactCopy copy(bytes);
    try {
        const dispatch::Predictor predictor(copy.data(), bytes.size(), kernels);
        return Status::ok;
    } catch (const dispatch::ArtifactError& error) {
        return error.status;
    }
}

/// (n, d), a quarter of it zeros, within scale * [-2, 2].
inline std::vector<double> random_rows(std::size_t n, std::size_t d, double scale = 1.0) {
    std::mt19937_64 random(n * 1000 + d);
    std::vector<double> rows(n * d);
    for (double& x : rows) x = random() % 4 == 0 ? 0.0 : scale * (static_cast<double>(random() % 4096) / 1024 - 2);
    return rows;
}

}  // namespace artifact_models
