// Opens artifacts that break a MUST of models/FORMAT.md, each in memory of exactly its size: all are refused, by a
// fault that names a field. tests/broken_artifacts.py writes them, one after the other, each behind its size as uint64.
//
//     test_broken_artifacts FILE

#include <approxsvm/approxsvm.hpp>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include "artifact_writer.hpp"

using namespace approxsvm;

int main(int n_arguments, char** arguments) {
    std::ifstream file(n_arguments > 1 ? arguments[1] : "", std::ios::binary);
    const artifact_writer::Bytes all((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    std::size_t n_refused = 0;
    for (std::size_t at = 0; at < all.size();) {
        std::uint64_t size;
        std::memcpy(&size, all.data() + at, sizeof size);
        const auto first = all.begin() + static_cast<std::ptrdiff_t>(at + sizeof size);
        const artifact_writer::Bytes bytes(first, first + static_cast<std::ptrdiff_t>(size));
        const artifact_writer::ExactCopy copy(bytes);
        Model model;
        ArtifactFault fault;
        const Status status = model.open({copy.data(), bytes.size()}, &fault);
        if (status == Status::ok || fault.field == field::none || status != model.open({copy.data(), bytes.size()})) {
            std::printf("number %zu: %s\n", n_refused, message(status));
            return 1;
        }
        at += sizeof size + bytes.size();
        ++n_refused;
    }
    std::printf("%zu refused\n", n_refused);
    return n_refused > 0 ? 0 : 1;
}
