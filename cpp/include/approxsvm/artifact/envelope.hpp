// The beginning of every artifact: magic bytes, version, size, checksum, header fields, section table.
#ifndef APPROXSVM_ARTIFACT_ENVELOPE_HPP
#define APPROXSVM_ARTIFACT_ENVELOPE_HPP

#include "../bounds/certificate.hpp"
#include "../expansion/form.hpp"
#include "fault.hpp"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "artifacts are little-endian and are used without conversion"
#endif

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

struct Section {
    std::size_t offset, bytes;  // both are 0 if the section is absent
};

// The sections of an artifact, by identifier.
struct SectionTable {
    const unsigned char* bytes;
    Section entries[max_sections + 1];

    const Section& operator[](section::Id id) const { return entries[id]; }
    // Returns the start of a section, or null if it is absent.
    const unsigned char* at(section::Id id) const {
        return entries[id].offset != 0 ? bytes + entries[id].offset : nullptr;
    }
};

// CRC-32 as in zlib and PNG, computed eight bytes at a time: entry[k] is the remainder of a half-byte followed by k
// half-bytes of zeros.
inline std::uint32_t crc32(const unsigned char* bytes, std::size_t n, std::uint32_t crc = 0) {
    struct Table {
        std::uint32_t entry[16][16];
        constexpr Table() : entry() {
            for (std::uint32_t i = 0; i < 16; ++i) {
                std::uint32_t c = i;
                for (int k = 0; k < 16; ++k) {
                    for (int bit = 0; bit < 4; ++bit) c = c & 1 ? 0xEDB88320u ^ (c >> 1) : c >> 1;
                    entry[k][i] = c;
                }
            }
        }
    };
    static constexpr Table table{};
    crc = ~crc;
    for (; n >= 8; bytes += 8, n -= 8) {
        const std::uint64_t x = read_at<std::uint64_t>(bytes, 0) ^ crc;
        crc = 0;
        for (int k = 0; k < 16; ++k) crc ^= table.entry[15 - k][x >> (4 * k) & 0xF];
    }
    for (; n > 0; ++bytes, --n) {
        const std::uint32_t x = crc ^ *bytes;
        crc = table.entry[1][x & 0xF] ^ table.entry[0][x >> 4 & 0xF] ^ (crc >> 8);
    }
    return ~crc;
}

// Returns the checksum of an artifact, computed with zeros in place of the four bytes that store the checksum.
inline std::uint32_t artifact_checksum(const unsigned char* bytes, std::size_t n_bytes) {
    const unsigned char zeros[4] = {};
    const std::uint32_t head = crc32(zeros, 4, crc32(bytes, checksum_offset));
    return crc32(bytes + checksum_offset + 4, n_bytes - checksum_offset - 4, head);
}

constexpr std::size_t aligned_up(std::size_t n) {
    return (n + section_alignment - 1) / section_alignment * section_alignment;
}

inline Header header_of(const unsigned char* bytes) {
    return read_at<Header>(bytes, 0);
}

// Checks magic bytes, version, size and checksum.
APPROXSVM_COLD inline Status check_envelope(const unsigned char* bytes, std::size_t n_bytes, ArtifactFault* fault) {
    Check is_artifact(fault, section::none, Status::bad_magic), is_whole(fault, section::none, Status::truncated);
    std::uint64_t first = 0;
    const std::size_t n_first = n_bytes < sizeof first ? n_bytes : sizeof first;
    for (std::size_t k = 0; k < n_first; ++k) first |= std::uint64_t{bytes[k]} << (8 * k);
    const std::uint64_t mask = n_first < sizeof first ? (std::uint64_t{1} << (8 * n_first)) - 1 : ~std::uint64_t{0};
    if (n_bytes == 0) is_artifact.refuse(field::any_size, n_bytes, at_least(header_bytes));
    if (first != (magic_number & mask)) is_artifact.refuse(field::header_magic, first, equal_to(magic_number), n_first);
    if (is_artifact.status() != Status::ok) return is_artifact.status();
    if (!is_whole(field::any_size, n_bytes, at_least(header_bytes))) return is_whole.status();
    const Header header = header_of(bytes);
    Check version(fault, section::none, Status::unsupported_version), size(fault, section::none, Status::size_mismatch),
        checksum(fault, section::none, Status::checksum_mismatch);
    if (header.version > format_version && header.first_release > format_release) {
        version.refuse(field::header_version, header.version,
                       {Rule::newer_format, stored(format_version), stored(header.first_release)});
    }
    version(field::header_version, header.version, equal_to(format_version));
    if (version.status() != Status::ok) return version.status();
    if (!size(field::header_file_bytes, header.file_bytes, equal_to(n_bytes))) return size.status();
    checksum(field::header_checksum, header.checksum, equal_to(artifact_checksum(bytes, n_bytes)));
    return checksum.status();
}

// Reads the section table, and checks that identifiers are strictly increasing, sections are contiguous, and gaps
// contain only zero bytes.
APPROXSVM_COLD inline Status read_sections(const unsigned char* bytes, std::size_t n_bytes, SectionTable& sections,
                                           ArtifactFault* fault) {
    sections.bytes = bytes;
    const std::size_t n_sections = header_of(bytes).n_sections;
    Check header(fault, section::none, Status::bad_header), is_whole(fault, section::none, Status::truncated),
        check(fault, section::none, Status::bad_section);
    if (!header(field::header_n_sections, n_sections, from_to(0, max_sections))) return header.status();
    std::size_t end = header_bytes + n_sections * section_entry_bytes;
    if (!is_whole(field::any_size, n_bytes, at_least(end))) return is_whole.status();
    std::uint32_t previous = section::none;
    for (std::size_t k = 0; k < n_sections; ++k) {
        const SectionEntry entry = read_at<SectionEntry>(bytes, header_bytes + k * section_entry_bytes);
        const bool placed = check(field::entry_identifier, entry.identifier, from_to(previous + 1, max_sections), k) &&
                            check(field::entry_reserved, entry.reserved, equal_to(0), k) &&
                            check(field::entry_offset, entry.offset, equal_to(aligned_up(end)), k) &&
                            check(field::entry_offset, entry.offset, from_to(0, n_bytes), k) &&
                            check(field::entry_size, entry.size, from_to(0, n_bytes - entry.offset), k) &&
                            check.zeros(bytes, end, static_cast<std::size_t>(entry.offset));
        if (!placed) return check.status();
        sections.entries[entry.identifier] = {static_cast<std::size_t>(entry.offset),
                                              static_cast<std::size_t>(entry.size)};
        end = static_cast<std::size_t>(entry.offset + entry.size);
        previous = entry.identifier;
    }
    if (check(field::any_size, n_bytes, equal_to(aligned_up(end)))) check.zeros(bytes, end, n_bytes);
    return check.status();
}

// Returns the constraint on a number in a record. Numbers not listed here are bounds, which must be finite and not
// negative.
inline Expected may_be(field::Id number) {
    switch (number) {
        case field::decisions_intercept:
        case field::check_row_value:
        case field::form_constant:
            return finite_number;
        case field::expansions_constant:
            return from_to(-1.0, 1.0);
        case field::expansions_output_scale:
            return {Rule::power_of_two, stored(1.0 / max_output_scale), stored(max_output_scale)};
        case field::expansions_contraction:
            return {Rule::power_of_two, stored(min_contraction), stored(1.0)};
        case field::expansions_max_sv_norm:
            return at_least(0.0);
        default:
            return finite_from_0;
    }
}

// Checks the numbers in the record with index `position` against the constraints of may_be().
template <class Record>
APPROXSVM_COLD inline void check_record(Check& check, const Record& record, std::size_t position) {
    for_numbers(record, [&](field::Id field, double number) { check(field, number, may_be(field), position); });
}

// Checks that a section is present if `wanted` is true, and absent otherwise.
APPROXSVM_COLD inline bool is_where_wanted(Check& check, const Section& section, const ModelView& model, bool wanted) {
    if ((section.offset != 0) == wanted) return check.status() == Status::ok;
    const Rule rule = wanted ? Rule::needed_in_mode : Rule::none_in_mode;
    return check.refuse(field::any_size, number_of(model.task),
                        Expected{rule, stored(number_of(model.mode)), stored(number_of(model.kernel))});
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif
