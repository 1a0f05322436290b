// Artifacts under a true checksum. One that opens is used in all the ways there are, by every target: dense and sparse
// rows in both precisions, a row alone and rows in blocks, all answers and promises, in memory of exactly the promised
// size. The answers may be nonsense. The predictor must not cause a report of a sanitizer, depend on what memory held
// before, name a label that is none, or be refused by one target and taken by another.

#include "artifact_mutator.hpp"
#include "exercise.hpp"
#include "script.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t n_bytes) {
    const artifact_mutator::Input input(bytes, n_bytes);
    const Exact<unsigned char> copy(input.artifact);
    approxsvm::ModelView model;
    if (approxsvm::open_artifact(copy.data.get(), copy.size, model) != approxsvm::Status::ok) return -1;  // no seed
    const std::uint32_t choice =
        artifact_writer::checksum_of(input.artifact) ^ static_cast<std::uint32_t>(input.rest.size() * 2654435761u);
    const std::string complaint = exercise::complaint_about(model, input.rest, choice);
    fuzz::require(complaint.empty(), complaint);
    return 0;
}
