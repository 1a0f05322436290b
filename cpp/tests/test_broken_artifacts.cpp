// Opens broken artifacts, each in memory of exactly its size: either they are rejected with a fault that names a field,
// or they are used in every possible way. tests/broken_artifacts.py writes them one after the other: for each, its size
// as uint64, a byte that is 1 if it must be rejected, and its bytes.

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "artifact_writer.hpp"
#include "check.hpp"
#include "exercise.hpp"

using namespace approxsvm;
using artifact_writer::Bytes;

TEST(broken_artifacts_are_refused_or_do_no_harm) {
    const char* const path = std::getenv("APPROXSVM_BROKEN_ARTIFACTS");
    if (path == nullptr) return;
    std::ifstream file(path, std::ios::binary);
    const Bytes all((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    CHECK(!all.empty());
    for (std::size_t at = 0, n = 0; at < all.size(); ++n) {
        const auto first = all.begin() + static_cast<std::ptrdiff_t>(at + 9);
        const auto size = static_cast<std::ptrdiff_t>(artifact_writer::get<std::uint64_t>(all, at));
        const Exact<unsigned char> bytes(Bytes(first, first + size));
        ModelView model;
        ArtifactFault fault;
        const Status status = open_artifact(bytes.data.get(), bytes.size, model, &fault);
        std::string complaint;
        if (status == Status::ok)
            complaint = all[at + 8] != 0 ? "is opened" : exercise::complaint_about(model, {}, 77u * std::uint32_t(n));
        else if (fault.field == field::none)
            complaint = message(status);
        if (!complaint.empty()) check::report(__FILE__, __LINE__, "number " + std::to_string(n) + ": " + complaint);
        at += 9 + bytes.size;
    }
}
