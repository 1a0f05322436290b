#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "artifact_writer.hpp"

// Changes artifacts where the format has something to say (models/FORMAT.md): fields of the header, numbers of
// sections, whole sections. Layout, sizes and checksum are made true again, so that what stands behind their checks is
// reached. What follows the artifact, from file_bytes on, is the input of a target's own: rows.

namespace artifact_mutator {

using artifact_writer::Bytes;
using Random = std::mt19937;

/// An input's artifact under a true magic, version, size and checksum, and what follows it.
struct Input {
    Bytes artifact, rest;

    Input(const std::uint8_t* bytes, std::size_t n_bytes);
};

/// Makes one to four changes. They depend only on the bytes and the seed, except for the fuzzer's own mutations.
Bytes mutated(const Bytes& artifact, Random& random, int depth = 0);

}  // namespace artifact_mutator

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* bytes, std::size_t n_bytes, std::size_t max_bytes,
                                               unsigned seed);
