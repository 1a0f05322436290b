#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "artifact_writer.hpp"

// Changes the parts of artifacts described by the format (models/FORMAT.md): header fields, numbers in sections, and
// whole sections. Layout, sizes and checksum are then corrected, so that the reader's checks of them pass. The bytes
// after the artifact, from file_bytes on, are the other input of a fuzz target: rows.

namespace artifact_mutator {

using artifact_writer::Bytes;
using Random = std::mt19937;

/// An input's artifact, with correct magic bytes, version, size and checksum, and the bytes after the artifact.
struct Input {
    Bytes artifact, rest;

    Input(const std::uint8_t* bytes, std::size_t n_bytes);
};

/// Makes one to four changes. They depend only on the bytes and the seed, except for the fuzzer's own mutations.
Bytes mutated(const Bytes& artifact, Random& random, int depth = 0);

}  // namespace artifact_mutator

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* bytes, std::size_t n_bytes, std::size_t max_bytes,
                                               unsigned seed);
