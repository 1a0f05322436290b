// Opens broken artifacts, each in memory of exactly its size: they are refused by a fault that names a field, or used
// in all the ways there are. tests/broken_artifacts.py writes them, one after the other: size as uint64, 1 where it
// must be refused, the bytes.
//
//     test_broken_artifacts FILE

#include <approxsvm/approxsvm.hpp>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "artifact_writer.hpp"
#include "exercise.hpp"

using namespace approxsvm;

namespace {

std::string complaint_about(const artifact_writer::Bytes& bytes, bool must_be_refused) {
    const artifact_writer::ExactCopy copy(bytes);
    ModelView model;
    ArtifactFault fault;
    const Status status = open_artifact(copy.data(), bytes.size(), model, &fault);
    if (status == Status::ok) return must_be_refused ? "is opened" : exercise::complaint_about(model);
    return fault.field == field::none ? message(status) : "";
}

}  // namespace

int main(int n_arguments, char** arguments) {
    std::ifstream file(n_arguments > 1 ? arguments[1] : "", std::ios::binary);
    const artifact_writer::Bytes all((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    std::size_t n = 0;
    for (std::size_t at = 0; at < all.size(); ++n) {
        const auto first = all.begin() + static_cast<std::ptrdiff_t>(at + 9);
        const std::uint64_t size = artifact_writer::get<std::uint64_t>(all, at);
        const std::string complaint =
            complaint_about({first, first + static_cast<std::ptrdiff_t>(size)}, all[at + 8] != 0);
        if (!complaint.empty()) {
            std::printf("number %zu: %s\n", n, complaint.c_str());
            return 1;
        }
        at += 9 + size;
    }
    std::printf("%zu broken artifacts\n", n);
    return n > 0 ? 0 : 1;
}
