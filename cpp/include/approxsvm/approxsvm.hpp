// approxsvm for C++ programs: evaluate a compiled kernel machine from memory.
//
// Promises: header-only C++17; no allocation, no exception, no I/O, no global state; every function returns a
// Status or cannot fail; one model may be used by any number of threads, each with a workspace of its own.
// Compile with the instruction set of the machine you deploy on (-march=native, -mavx2 -mfma, ...): the
// fastest microkernels that the flags allow are used. Never with -ffast-math.
//
//     approxsvm::ModelView model;
//     if (approxsvm::open_artifact(bytes, n_bytes, model) != approxsvm::Status::ok) ...
//
// An approximate artifact needs nothing else:
//
//     std::vector<unsigned char> workspace(approxsvm::decision_function_bytes(model.n_features));
//     double value;
//     approxsvm::decision_function(model, approxsvm::DenseRows<float>{row, 1, 0, 1}, &value, workspace.data());
//     std::int64_t label = approxsvm::integer_label(model, value);
//
// Labels that equal the exact model's, or values with a bound, need memory for the support vectors as well:
//
//     std::vector<unsigned char> memory(approxsvm::prepared_bytes(model));
//     const approxsvm::PreparedModel& prepared = approxsvm::prepare(model, memory.data());
//     std::vector<unsigned char> workspace(approxsvm::evaluation_workspace_bytes(model));
//     approxsvm::evaluate(prepared, rows, {values, bounds, nullptr}, workspace.data());
//
// A complete program is in cpp/examples/embed; the artifact's bytes are described in models/FORMAT.md.
#pragma once

#include "artifact.hpp"
#include "evaluate.hpp"
#include "predict.hpp"
#include "sparse.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// The position of the predicted label among the model's labels: LIBSVM's rule, f > 0 is the first label and 0
// the second. For a one-class model 0 means an inlier (+1), 1 an outlier (-1).
inline std::size_t label_position(double decision_value) {
    return decision_value > 0.0 ? 0 : 1;
}

// The predicted label of a model whose label_kind is int64, or +1 / -1 for a one-class model.
inline std::int64_t integer_label(const ModelView& model, double decision_value) {
    const std::size_t k = label_position(decision_value);
    if (model.task == Task::one_class) return k == 0 ? 1 : -1;
    return read_at<std::int64_t>(model.labels, 8 * k);
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm
