// Code shared by all kinds of kernels without expansions.
#pragma once

#include "exact_cascade.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Sends every row directly to the exact engine.
template <class AnyCascade>
inline Status engine_rows(AnyCascade& cascade, const RowSource& source, bool in_float64) {
    for (std::size_t i = 0; i < source.n_rows(); ++i) {
        const Status status = source.check(i);
        if (status != Status::ok) return status;
        if (in_float64)
            cascade.send_to_float64(i);
        else
            cascade.send_to_float32(i);
    }
    return Status::ok;
}

template <class AnyCascade>
inline Status all_rows(AnyCascade&& cascade, const RowSource& source, bool in_float64) {
    const Status status = engine_rows(cascade, source, in_float64);
    return status == Status::ok ? cascade.finish() : status;
}

// Whether a mapped row's error may affect a label or a value's tolerance. The error changes a value by at most `moved`
// A1, and labels are guaranteed down to exact_share A1.
inline bool is_felt(const PreparedModel& prepared, double moved) {
    const double tolerance = prepared.view->tolerance;
    return !(moved <= 0.2 * exact_share && moved * prepared.largest_moduli <= 0.2 * tolerance);
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm
