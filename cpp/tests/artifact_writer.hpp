#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

// Writes artifacts byte by byte according to models/FORMAT.md. Nothing from the library is used here, so that reader
// and writer cannot share a mistake.

namespace artifact_writer {

using Bytes = std::vector<unsigned char>;

/// Magic, version and first_release.
constexpr unsigned char first_bytes[] = {0x89, 0x41, 0x53, 0x56, 0x4D, 0x0D, 0x0A, 0x1A, 1, 0, 1, 0};

/// Section identifiers.
enum SectionNumber : std::uint32_t {
    center = 1,
    decisions = 2,
    expansions = 3,
    linear = 5,
    quadratic = 6,
    labels = 10,
    check_rows = 11,
    dual_coef = 16,
    support_vectors = 17,
    exact_check_rows = 18,
    polynomial = 22,
    members = 23,
    subspace_expansion = 26
};

template <class T>
void append(Bytes& bytes, T value) {
    unsigned char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    bytes.insert(bytes.end(), raw, raw + sizeof value);
}

template <class T>
void put(Bytes& bytes, std::size_t offset, T value) {
    std::memcpy(bytes.data() + offset, &value, sizeof value);
}

template <class T>
T get(const Bytes& bytes, std::size_t offset) {
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
}

/// The format's CRC-32, with the four bytes of the checksum itself taken as zeros.
std::uint32_t checksum_of(const Bytes& bytes);

/// Corrects file_bytes and checksum after a change, so that a reader sees only the change itself.
void seal(Bytes& bytes);

struct Section {
    std::uint32_t identifier;
    Bytes content;
};

/// Header, section table and sections, sealed.
Bytes laid_out(Bytes header, const std::vector<Section>& sections);

}  // namespace artifact_writer
