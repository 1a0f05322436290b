// approxsvm for C++ programs: evaluates a compiled kernel machine in memory.
//
// Guarantees: header-only C++17; no allocation, no exceptions, no I/O, no global state. Every function either returns a
// Status or cannot fail. Any number of threads may use one model, each with its own workspace. Compile with the
// instruction set of the target machine (-march=native, -mavx2 -mfma, ...): the library uses the fastest kernels that
// these flags allow. An #error rejects -ffast-math and the flags it implies, if the compiler exposes them. Contraction
// of a * b + c (-ffp-contract) is harmless (see simd.hpp).
//
//     approxsvm::Model model;                              // model.hpp documents all functions
//     Status status = model.open(bytes);                   // any .asvm file; must outlive the model
//                                                          // (open(bytes, &fault) reports the rejected value)
//     std::vector<unsigned char> memory(model.memory_bytes());
//     status = model.prepare(memory);                      // must also outlive the model
//     std::vector<unsigned char> workspace(model.workspace_bytes());  // one per thread
//
//     std::vector<float> rows = ...;                       // raw, n_rows * model.n_features() values
//     std::vector<std::uint32_t> labels(n_rows);
//     status = model.predict(rows, labels, workspace);
//     std::cout << model.label(labels[0]);
//
//     std::vector<double> values(n_rows * model.n_decisions());  // bounds has the same size
//     status = model.decision_values(rows, values, workspace);
//     status = model.error_bounds(rows, bounds, workspace);
//     std::vector<double> shares(n_rows * model.n_probabilities());
//     status = model.probabilities(rows, shares, workspace);
//
// Pass the raw rows that the source model expects: a pipeline's artifact scales and projects them itself. Buffer sizes
// are checked. If a buffer is too small, the call returns Status::buffer_too_small before anything is written. Requests
// for outputs that the model does not have are also rejected: labels from a regressor, probabilities if the source has
// none, and values from an ensemble that averages probabilities or counts votes. So are calls before open() and
// prepare().
//
// Only the requested outputs are computed. Labels alone are cheapest, because the expansion proves most labels. The
// values of a certified or exact artifact are the source model's values, computed by the exact engine in float64,
// unless a tolerance was requested at compilation. evaluate() with Values::settled returns the values of the stage that
// determined each label; they are cheap, but only as close to the exact values as their bounds guarantee. One call to
// evaluate() fills every output for which an Evaluation has memory.
//
// A value is positive for the model's first label, label(0), or for the first label of a pair. With two classes,
// Python's decision_function has the opposite sign if the first label is the smaller one, because in Python a positive
// value means the larger label. Probabilities follow the order of the model's labels.
//
// Memory: bound tables take about 50 KB (more for higher degrees), and the exact engine takes 12 bytes per support
// vector and feature. A workspace for up to four rows per call is small. For more rows, its size depends on the
// machine's vector width and on the number of centers, because rows are sorted by center. It is larger for pipelines,
// probabilities and ensembles, which process rows in chunks. See the table in docs/howto/cpp.md. `approxsvm export --c`
// writes headers for smaller devices.
//
// cpp/examples/embed contains a complete program, and models/FORMAT.md describes the artifact format.
#include "version.hpp"

#ifndef APPROXSVM_APPROXSVM_HPP
#define APPROXSVM_APPROXSVM_HPP

// Other headers define these names as macros: check (macOS, Unreal), finite (C libraries), read, send and write (lwIP's
// sockets), Status (X11). They are restored at the end of this header.
#pragma push_macro("check")
#pragma push_macro("finite")
#pragma push_macro("read")
#pragma push_macro("send")
#pragma push_macro("write")
#pragma push_macro("Status")
#undef check
#undef finite
#undef read
#undef send
#undef write
#undef Status

#include "artifact/labels.hpp"
#include "artifact/reader.hpp"
#include "expansion/decision_function.hpp"
#include "expansion/sparse.hpp"
#include "model.hpp"
#include "outputs/outputs.hpp"
#include "predict/predict.hpp"
#include "predict/replay.hpp"

#pragma pop_macro("Status")
#pragma pop_macro("write")
#pragma pop_macro("send")
#pragma pop_macro("read")
#pragma pop_macro("finite")
#pragma pop_macro("check")

#endif
