// approxsvm for C++ programs: evaluate a compiled kernel machine from memory.
//
// Promises: header-only C++17; no allocation, no exception, no I/O, no global state; every function returns a
// Status or cannot fail; one model may be used by any number of threads, each with a workspace of its own.
// Compile with the instruction set of the machine you deploy on (-march=native, -mavx2 -mfma, ...): the
// fastest microkernels that the flags allow are used. -ffast-math and its parts are refused by an #error where the
// compiler tells; contraction of a * b + c (-ffp-contract) is harmless, see simd.hpp.
//
//     approxsvm::ModelView model;
//     if (approxsvm::open_artifact(bytes, n_bytes, model) != approxsvm::Status::ok) ...
//
//     std::vector<unsigned char> memory(approxsvm::prepared_bytes(model));
//     const approxsvm::PreparedModel* prepared = nullptr;
//     if (approxsvm::prepare(model, memory, prepared) != approxsvm::Status::ok) ...
//
//     std::vector<unsigned char> workspace(approxsvm::evaluation_workspace_bytes(model));  // one for each thread
//     std::vector<float> rows = ...;                  // n_rows * model.n_features numbers
//     std::vector<std::uint32_t> labels(n_rows);
//     approxsvm::Evaluation out;
//     out.labels = labels;                            // and out.values, out.bounds of n_rows * model.n_decisions
//     numbers if (approxsvm::evaluate(*prepared, rows, out, workspace) != approxsvm::Status::ok) ... std::cout <<
//     approxsvm::label_at(model, labels[0]);
//
// What is asked for decides what is computed. Labels alone cost least: the expansion proves most of them. Values of a
// certified or exact artifact are the source model's own, by the exact engine in float64, unless a tolerance was asked
// for at compilation; Values::settled asks for those of whichever stage settled the label, which are cheap and only as
// close as their bounds say. Every buffer says how large it is, and one that is too small is refused before anything is
// written: Status::buffer_too_small.
//
// A value is positive for the first label of the model, label_at(model, 0). For two classes that is the other sign than
// that of Python's decision_function, where positive means the greater label, whenever the first label is the smaller.
//
// The core does not scale or project rows and labels by votes alone. An artifact that asks for more, of a pipeline for
// example, is refused by prepare() and decision_function() with Status::needs_input_map or needs_label_rule; who does
// that part himself passes Extras::by_caller, and then rows of model.n_features columns, mapped already.
//
// An approximate artifact can do with less memory: decision_function() gives the values of its expansion, no bounds.
//
//     std::vector<unsigned char> memory(approxsvm::decision_function_bytes(model.n_features));
//     approxsvm::decision_function(model, rows, values, memory);
//
// A complete program is in cpp/examples/embed; the artifact's bytes are described in models/FORMAT.md.
#pragma once

#include "answers.hpp"
#include "artifact.hpp"
#include "labels.hpp"
#include "outputs.hpp"
#include "predict.hpp"
#include "replay.hpp"
#include "sparse.hpp"
