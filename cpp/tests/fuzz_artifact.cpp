// libFuzzer target: magic, version, file size and checksum are made right, so that everything behind them is reached.
// An artifact that opens must then replay, fold and predict, and in every mode prepare and evaluate, dense and sparse
// rows on every target, without any report of a sanitizer.
//
// Configure with Clang and -DAPPROXSVM_BUILD_FUZZERS=ON -DAPPROXSVM_SANITIZE=fuzzer-no-link,address,undefined: without
// the first the core is not instrumented and the fuzzer stops at once. Small artifacts of all three modes are good
// seeds: approxsvm.compile(model, mode=...).save(path).

#include <approxsvm/approxsvm.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "artifact_writer.hpp"
#include "exercise.hpp"

namespace {

using artifact_writer::Bytes;

/// The fuzzer's bytes under a true magic, version, size and checksum.
Bytes repaired(const std::uint8_t* bytes, std::size_t n_bytes) {
    Bytes result(bytes, bytes + n_bytes);
    if (result.size() < approxsvm::header_bytes) return result;
    std::memcpy(result.data(), approxsvm::magic, sizeof approxsvm::magic);
    artifact_writer::put(result, 8, approxsvm::format_version);
    artifact_writer::seal(result);
    return result;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t n_bytes) {
    const Bytes whole = repaired(bytes, n_bytes);
    const artifact_writer::ExactCopy copy(whole);
    approxsvm::ModelView model;
    if (approxsvm::open_artifact(copy.data(), whole.size(), model) != approxsvm::Status::ok) return 0;
    const std::string complaint = exercise::complaint_about(model);
    if (!complaint.empty()) {
        std::fprintf(stderr, "%s\n", complaint.c_str());
        std::abort();
    }
    return 0;
}
