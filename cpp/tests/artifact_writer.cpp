#include "artifact_writer.hpp"

namespace artifact_writer {

std::uint32_t checksum_of(const Bytes& bytes) {
    static const std::vector<std::uint32_t> of_byte = [] {
        std::vector<std::uint32_t> entries;
        for (std::uint32_t byte = 0; byte < 256; ++byte) {
            std::uint32_t crc = byte;
            for (int bit = 0; bit < 8; ++bit) crc = (crc & 1u) != 0 ? 0xEDB88320u ^ (crc >> 1) : crc >> 1;
            entries.push_back(crc);
        }
        return entries;
    }();
    std::uint32_t crc = ~0u;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        crc = of_byte[(crc ^ (i >= 24 && i < 28 ? 0u : bytes[i])) & 255u] ^ (crc >> 8);
    }
    return ~crc;
}

void seal(Bytes& bytes) {
    put(bytes, 16, static_cast<std::uint64_t>(bytes.size()));
    put(bytes, 24, checksum_of(bytes));
}

Bytes laid_out(Bytes bytes, const std::vector<Section>& sections) {
    put(bytes, 12, static_cast<std::uint32_t>(sections.size()));
    std::size_t offset = bytes.size() + 24 * sections.size();
    for (const Section& section : sections) {
        offset = (offset + 63) / 64 * 64;
        append(bytes, section.identifier);
        append(bytes, std::uint32_t{0});
        append(bytes, std::uint64_t{offset});
        append(bytes, std::uint64_t{section.content.size()});
        offset += section.content.size();
    }
    for (const Section& section : sections) {
        bytes.resize((bytes.size() + 63) / 64 * 64);
        bytes.insert(bytes.end(), section.content.begin(), section.content.end());
    }
    bytes.resize((bytes.size() + 63) / 64 * 64);
    seal(bytes);
    return bytes;
}

}  // namespace artifact_writer
