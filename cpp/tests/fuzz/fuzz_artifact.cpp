// Fuzzes artifacts with a correct checksum. If one opens, every target uses it in every possible way: dense and sparse
// rows in both precisions, single rows and blocks, all outputs and kinds of values, in memory of exactly the required
// size. The outputs may be nonsense. The predictor must not cause a sanitizer report, depend on previous memory
// contents, return an invalid label, or be rejected by one target and accepted by another.

#include "artifact_mutator.hpp"
#include "exercise.hpp"
#include "script.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t n_bytes) {
    const artifact_mutator::Input input(bytes, n_bytes);
    const Exact<unsigned char> copy(input.artifact);
    approxsvm::ModelView model;
    if (approxsvm::open_artifact(copy.data.get(), copy.size, model) != approxsvm::Status::ok) return -1;  // not a seed
    const std::uint32_t choice =
        artifact_writer::checksum_of(input.artifact) ^ static_cast<std::uint32_t>(input.rest.size() * 2654435761u);
    const std::string complaint = exercise::complaint_about(model, input.rest, choice);
    fuzz::require(complaint.empty(), complaint);
    return 0;
}
