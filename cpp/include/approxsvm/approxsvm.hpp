// approxsvm for C++ programs: evaluate a compiled kernel machine from memory.
//
// Promises: header-only C++17; no allocation, no exception, no I/O, no global state; every function returns a
// Status or cannot fail; one model may be used by any number of threads, each with a workspace of its own.
// Compile with the instruction set of the machine you deploy on (-march=native, -mavx2 -mfma, ...): the
// fastest microkernels that the flags allow are used. -ffast-math and its parts are refused by an #error where the
// compiler tells; contraction of a * b + c (-ffp-contract) is harmless, see simd.hpp.
//
//     approxsvm::Model model;                              // model.hpp says what else it can do
//     Status status = model.open(bytes);                   // of any .asvm file; they must outlive the model
//                                                          // (open(bytes, &fault) says which number is refused)
//     std::vector<unsigned char> memory(model.memory_bytes());
//     status = model.prepare(memory);                      // and so must this
//     std::vector<unsigned char> workspace(model.workspace_bytes());  // one for each thread
//
//     std::vector<float> rows = ...;                       // raw, n_rows * model.n_features() numbers
//     std::vector<std::uint32_t> labels(n_rows);
//     status = model.predict(rows, labels, workspace);
//     std::cout << model.label(labels[0]);
//
//     std::vector<double> values(n_rows * model.n_decisions());  // and bounds of as many
//     status = model.decision_values(rows, values, workspace);
//     status = model.error_bounds(rows, bounds, workspace);
//     std::vector<double> shares(n_rows * model.n_probabilities());
//     status = model.probabilities(rows, shares, workspace);
//
// Rows are those that the source model takes: an artifact of a pipeline scales and projects them itself. Every buffer
// says how large it is, and one that is too small is refused before anything is written: Status::buffer_too_small. What
// a model does not have is refused, too: labels of a regression, probabilities of a source without them, values of an
// ensemble that averages probabilities or counts votes. So are calls before open() and prepare().
//
// What is asked for decides what is computed. Labels alone cost least: the expansion proves most of them. Values of a
// certified or exact artifact are the source model's own, by the exact engine in float64, unless a tolerance was asked
// for at compilation; evaluate() with Values::settled gives those of whichever stage settled the label, which are cheap
// and only as close as their bounds say. It also fills everything that an Evaluation has room for in one go.
//
// A value is positive for the first label of the model, label(0), or of a pair of labels. For two classes that is the
// other sign than that of Python's decision_function, where positive means the greater label, whenever the first label
// is the smaller. Probabilities come in the order of the model's labels.
//
// Memory: what the bounds are read from takes some 50 KB (more for higher degrees), the exact engine 12 bytes for each
// support vector and feature. models/breast_cancer.asvm (62 vectors, 30 features, a 21 KB file) takes 92 KB, and a
// workspace of 24 to 43 KB, the more the wider the vectors of the machine; models/iris_classes.asvm (4 centers, a 6 KB
// file) 64 KB and, as rows are sorted by centers, 190 KB. Pipelines, probabilities and ensembles go through rows in
// pieces that take 0.5 to 2 MB, with many centers up to 12 MB. A device with less has expansion_values(), which prove
// nothing: 2 to 7 KB for the first of these models, 1 to 2 KB for the second, beside the file. For calls of up to four
// rows workspace_bytes(4) is enough, 2 to 4 KB for both models.
//
// A complete program is in cpp/examples/embed; the artifact's bytes are described in models/FORMAT.md.
#pragma once

// Names that other headers define as macros: check (macOS, Unreal), finite (C libraries), read, send and write (lwIP's
// sockets), Status (X11). They are back at the end of this header.
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
#include "predict/answers.hpp"
#include "predict/replay.hpp"

#pragma pop_macro("Status")
#pragma pop_macro("write")
#pragma pop_macro("send")
#pragma pop_macro("read")
#pragma pop_macro("finite")
#pragma pop_macro("check")
