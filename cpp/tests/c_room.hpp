#pragma once

#include <approxsvm.h>

#include "exact_memory.hpp"

/// Exactly sized memory for the outputs of the C interface, and a request for some of them. In `wanted`, each output
/// has one bit, in member order. A bit that is also set in `missing` makes that output's buffer one element too small.
struct CRoom {
    CRoom(const approxsvm_model* model, std::size_t n_rows, unsigned wanted, unsigned missing = 0)
        : labels(less(n_rows * approxsvm_n_targets(model), missing & 1u)),
          values(less(n_rows * approxsvm_n_decisions(model), missing & 2u)),
          bounds(less(n_rows * approxsvm_n_decisions(model), missing & 4u)),
          shares(less(n_rows * approxsvm_n_probabilities(model), missing & 8u)),
          share_bounds(less(n_rows * approxsvm_n_probabilities(model), missing & 16u)),
          certified(less(n_rows * approxsvm_n_targets(model), missing & 32u)) {
        if (wanted & 1u) request.labels = labels.data.get(), request.labels_size = labels.size;
        if (wanted & 2u) request.values = values.data.get(), request.values_size = values.size;
        if (wanted & 4u) request.bounds = bounds.data.get(), request.bounds_size = bounds.size;
        if (wanted & 8u) request.probabilities = shares.data.get(), request.probabilities_size = shares.size;
        if (wanted & 16u)
            request.probability_bounds = share_bounds.data.get(), request.probability_bounds_size = share_bounds.size;
        if (wanted & 32u) request.certified = certified.data.get(), request.certified_size = certified.size;
    }
    /// The bits of all outputs that a model has.
    static unsigned all_of(const approxsvm_model* model) {
        return (approxsvm_n_labels(model) > 0 ? 1u : 0u) | (approxsvm_n_decisions(model) > 0 ? 6u : 0u) |
               (approxsvm_n_probabilities(model) > 0 ? 24u : 0u) | 32u;
    }
    static std::size_t less(std::size_t n, unsigned by) { return n > 0 && by != 0 ? n - 1 : n; }
    bool is_untouched() const {
        return labels.is_untouched() && values.is_untouched() && bounds.is_untouched() && shares.is_untouched() &&
               share_bounds.is_untouched() && certified.is_untouched();
    }
    bool operator==(const CRoom& other) const {
        return labels == other.labels && values == other.values && bounds == other.bounds && shares == other.shares &&
               share_bounds == other.share_bounds && certified == other.certified;
    }

    Exact<std::uint32_t> labels;
    Exact<double> values, bounds, shares, share_bounds;
    Exact<std::uint8_t> certified;
    approxsvm_request request = APPROXSVM_REQUEST;
};
