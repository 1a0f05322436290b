// libFuzzer target: magic, version, file size and checksum are made right, so that everything behind them is reached.
// An artifact that opens must then replay, fold, and predict a dense and a sparse row without any report of a
// sanitizer, and every sum must be a number.
//
// Configure with Clang and -DAPPROXSVM_BUILD_FUZZERS=ON -DAPPROXSVM_SANITIZE=fuzzer-no-link,address,undefined: without
// the first the core is not instrumented and the fuzzer stops at once. Artifacts (models/*.asvm) are good seeds.

#include <approxsvm/approxsvm.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "artifact_writer.hpp"
#include "kernels.hpp"

namespace {

using namespace approxsvm;
using artifact_writer::Bytes;

void require(bool holds) {
    if (!holds) std::abort();
}

/// The fuzzer's bytes under a true magic, version, size and checksum.
Bytes repaired(const std::uint8_t* bytes, std::size_t n_bytes) {
    Bytes result(bytes, bytes + n_bytes);
    if (result.size() < header_bytes) return result;
    std::memcpy(result.data(), magic, sizeof magic);
    artifact_writer::put(result, 8, format_version);
    artifact_writer::seal(result);
    return result;
}

void predict_everywhere(const ModelView& model) {
    const std::size_t d = model.n_features;
    const std::unique_ptr<double[]> memory(new double[folded_doubles(d)]);
    const FoldedModel terms = fold_center(model, memory.get());
    const dispatch::Folded folded{terms.constant, terms.center_sq_norm, terms.half_theta, terms.linear};

    const std::vector<float> near(model.center, model.center + d), far(d, 3e38f);
    const float values[] = {1.0f, 0.5f, -2.0f};
    const std::int32_t columns[] = {-1, static_cast<std::int32_t>(d - 1), static_cast<std::int32_t>(d)};
    const std::int32_t row_starts[] = {0, 3, 3};
    for (const dispatch::Kernels* kernels : dispatch::runnable_targets()) {
        const std::unique_ptr<unsigned char[]> workspace(new unsigned char[kernels->replay_bytes(d)]);
        kernels->replay_check_rows(model, workspace.get());
        double decided[7];
        require(kernels->dense_f32(model, {near.data(), 1, 0, 1}, decided, workspace.get()) == Status::ok);
        require(!std::isnan(decided[0]));
        require(kernels->dense_f32(model, {near.data(), 7, 0, 1}, decided, workspace.get()) == Status::ok);
        require(decided[0] == decided[6]);
        require(kernels->dense_f32(model, {far.data(), 1, 0, 1}, decided, workspace.get()) == Status::ok);
        require(kernels->csr_f32_i32(model, folded, {values, columns, row_starts, 2}, decided, workspace.get()) ==
                Status::ok);
        require(model.gamma == 0.0 || (!std::isnan(decided[0]) && !std::isnan(decided[1])));
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t n_bytes) {
    const Bytes whole = repaired(bytes, n_bytes);
    const artifact_writer::ExactCopy copy(whole);
    ModelView model;
    if (open_artifact(copy.data(), whole.size(), model) != Status::ok) return 0;
    predict_everywhere(model);
    if (model.task == Task::classification && model.label_kind == LabelKind::int64) {
        require(integer_label(model, 1.0) != integer_label(model, 0.0));
    }
    return 0;
}
