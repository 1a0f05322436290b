// approxsvm for C++ programs: evaluate a compiled kernel machine in memory.
//
// Guarantees: header-only C++17; no allocation, no exceptions, no I/O, no global state. Every function returns a Status
// or cannot fail. Any number of threads may use one model, each with its own workspace. Compile with the instruction
// set of the target machine (-march=native, -mavx2 -mfma, ...): the library uses the fastest kernels that these flags
// allow. An #error rejects -ffast-math and the flags that it includes, if the compiler reveals them. Contraction of a *
// b + c (-ffp-contract) is harmless (see simd.hpp).
//
//     approxsvm::Model model;                              // model.hpp documents all functions
//     Status status = model.open(bytes);                   // any .asvm file; must outlive the model
//                                                          // (open(bytes, &fault) reports the rejected number)
//     std::vector<unsigned char> memory(model.memory_bytes());
//     status = model.prepare(memory);                      // must also outlive the model
//     std::vector<unsigned char> workspace(model.workspace_bytes());  // one per thread
//
//     std::vector<float> rows = ...;                       // raw, n_rows * model.n_features() numbers
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
// Pass the raw rows that the source model takes, because a pipeline's artifact scales and projects the rows itself.
// Every buffer has a size. If a buffer is too small, the call returns Status::buffer_too_small before anything is
// written. Outputs that the model does not have are also rejected: labels of a regression, probabilities that the
// source lacks, and values of an ensemble that averages probabilities or counts votes. Calls before open() and
// prepare() are rejected, too.
//
// Only the requested outputs are computed. Labels alone are cheapest, because the expansion proves most labels. The
// values of a certified or exact artifact are the source model's values, computed by the exact engine in float64,
// unless a tolerance was requested at compilation. evaluate() with Values::settled returns the values of the stage that
// determined each label; these values are cheap, but no closer to the exact values than their bounds. One call of
// evaluate() fills every output for which an Evaluation has memory.
//
// A value is positive for the model's first label, label(0), or for the first label of a pair. With two classes,
// Python's decision_function has the opposite sign if the first label is the smaller label, because in Python a
// positive value means the larger label. Probabilities are in the order of the model's labels.
//
// Memory: tables of bounds take some 50 KB (more for higher degrees), and the exact engine takes 12 bytes per support
// vector and feature. A workspace for calls of up to four rows is small. For more rows, the size of a workspace depends
// on the machine's vector width and on the number of centers, by which rows are sorted, and is larger for pipelines,
// probabilities and ensembles, which process rows in chunks. docs/howto/cpp.md has a table. `approxsvm export --c`
// writes headers for smaller devices.
//
// cpp/examples/embed contains a complete program, and models/FORMAT.md describes the artifact's bytes.
#include "version.hpp"

#ifndef APPROXSVM_APPROXSVM_HPP
#define APPROXSVM_APPROXSVM_HPP

// Other headers define these names as macros: check (macOS, Unreal), finite (C libraries), read, send and write (lwIP's
// sockets), Status (X11). The end of this header restores these macros.
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
