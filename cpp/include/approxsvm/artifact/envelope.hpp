// What every artifact begins with: magic bytes, version, size, checksum, header fields, section table.
#pragma once

#include "../bounds/certificate.hpp"
#include "../expansion/form.hpp"
#include "fault.hpp"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "artifacts are little-endian and are used without conversion"
#endif

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

struct Section {
    std::size_t offset, bytes;  // both 0 when absent
};

// The sections of one artifact by their identifiers.
struct SectionTable {
    const unsigned char* bytes;
    Section entries[max_sections + 1];

    const Section& operator[](section::Id id) const { return entries[id]; }
    // Null when absent.
    const unsigned char* at(section::Id id) const {
        return entries[id].offset != 0 ? bytes + entries[id].offset : nullptr;
    }
};

// CRC-32 as in zlib and PNG, eight bytes at a time: entry[k] is the remainder of a byte with k bytes of zeros behind
// it.
inline std::uint32_t crc32(const unsigned char* bytes, std::size_t n, std::uint32_t crc = 0) {
    struct Table {
        std::uint32_t entry[8][256];
        constexpr Table() : entry() {
            for (std::uint32_t i = 0; i < 256; ++i) {
                std::uint32_t c = i;
                for (int bit = 0; bit < 8; ++bit) c = c & 1 ? 0xEDB88320u ^ (c >> 1) : c >> 1;
                entry[0][i] = c;
            }
            for (int k = 1; k < 8; ++k) {
                for (int i = 0; i < 256; ++i) {
                    entry[k][i] = entry[0][entry[k - 1][i] & 0xFF] ^ (entry[k - 1][i] >> 8);
                }
            }
        }
    };
    static constexpr Table table{};
    crc = ~crc;
    for (; n >= 8; bytes += 8, n -= 8) {
        const std::uint64_t x = read_at<std::uint64_t>(bytes, 0) ^ crc;
        crc = 0;
        for (int k = 0; k < 8; ++k) crc ^= table.entry[7 - k][x >> (8 * k) & 0xFF];
    }
    for (; n > 0; ++bytes, --n) crc = table.entry[0][(crc ^ *bytes) & 0xFF] ^ (crc >> 8);
    return ~crc;
}

// The checksum of a whole artifact: its own four bytes count as zeros.
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

// Magic bytes, version, size and checksum.
inline Status check_envelope(const unsigned char* bytes, std::size_t n_bytes, ArtifactFault* fault) {
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

// Header fields that stand alone, or with each other.
inline Status read_header(const unsigned char* bytes, ModelView& model, ArtifactFault* fault) {
    const Header header = header_of(bytes);
    Check check(fault, section::none, Status::bad_header);
    const bool ensemble = header.mode == number_of(Mode::ensemble), exact = header.mode == number_of(Mode::exact);
    const bool polynomial = header.kernel == number_of(KernelKind::polynomial),
               cosine = header.kernel == number_of(KernelKind::cosine);
    const bool expanded = !ensemble && !exact && !polynomial;
    check(field::header_first_release, header.first_release, equal_to(format_release));
    check(field::header_task, header.task, up_to(Task::one_class));
    check(field::header_mode, header.mode, up_to(Mode::ensemble));
    check(field::header_label_kind, header.label_kind, up_to(LabelKind::text));
    check(field::header_first_index, header.first_index, from_to(0, 1));
    check(field::header_center_kind, header.center_kind, up_to(CenterKind::mean));
    check(field::header_tolerance_asked, header.tolerance_asked, from_to(0, 1));
    check(field::header_kernel, header.kernel, up_to(ensemble ? KernelKind::gaussian : KernelKind::cosine));
    if (cosine) {
        check(field::header_mode, header.mode, equal_to(number_of(Mode::exact)));
        check(field::header_n_decisions, header.n_decisions, equal_to(1));
        check(field::header_gamma, header.gamma, equal_to(0.0));
    }
    const int highest = !polynomial ? max_degree : exact ? max_kernel_degree : max_form_degree;
    check(field::header_degree, header.degree, polynomial || expanded ? from_to(1, highest) : equal_to(0));
    check(field::header_n_centers, header.n_centers, expanded ? from_to(1, max_n_centers) : equal_to(0));
    check(field::header_first_remainder_degree, header.first_remainder_degree,
          expanded ? from_to(header.degree + 1, last_norm_degree + 1) : equal_to(0));
    if (polynomial || cosine) check(field::header_center_kind, header.center_kind, equal_to(0));
    // Those of an ensemble are counted with its members.
    check(field::header_n_labels, header.n_labels, from_to(0, max_n_labels));
    if (!ensemble)
        check(field::header_n_decisions, header.n_decisions, equal_to(n_decisions_of(std::size_t{header.n_labels})));
    check(field::header_n_features, header.n_features, from_to(1, max_n_features));
    check(field::header_n_raw_features, header.n_raw_features, from_to(1, max_n_features));
    const bool may_have_majorities = header.mode == number_of(Mode::certified) && !polynomial && header.n_labels > 2 &&
                                     !(header.tolerance < infinity);
    check(field::header_majority_only, header.majority_only, from_to(0, may_have_majorities ? 1 : 0));
    check(field::header_gamma, header.gamma, polynomial ? finite_number : finite_from_0);
    check(field::header_input_scale, header.input_scale,
          Expected{Rule::power_of_two, stored(1.0 / max_input_scale), stored(max_input_scale)});
    if (polynomial || cosine || ensemble) check(field::header_input_scale, header.input_scale, equal_to(1.0));
    const double gamma = header.gamma + 0.0;  // which is 0 for -0, whose sign would be that of every distance
    const double theta = 2.0 * gamma / header.input_scale / header.input_scale;
    if (!polynomial && header.gamma > 0.0)
        check(field::header_theta, theta, Expected{Rule::from_below, stored(1.0), stored(4.0)});
    check(field::header_max_sv_norm, header.max_sv_norm, at_least(0.0));
    check(field::header_max_sv_norm_origin, header.max_sv_norm_origin, at_least(0.0));
    check(field::header_tolerance, header.tolerance, Expected{Rule::above, stored(0.0), {}});
    if (ensemble) {
        check(field::header_task, header.task, up_to(Task::regression));
        check(field::header_gamma, header.gamma, equal_to(0.0));
        check(field::header_tolerance, header.tolerance, at_least(infinity));
    }
    if (check.status() != Status::ok) return check.status();
    model.first_index = header.first_index;
    model.n_labels = header.n_labels;
    model.gamma = gamma;
    model.input_scale = header.input_scale;
    model.tolerance = header.tolerance;
    model.max_sv_norm = header.max_sv_norm;
    model.max_sv_norm_origin = header.max_sv_norm_origin;
    model.tolerance_asked = header.tolerance_asked != 0;
    model.majority_only = header.majority_only == 1;
    model.kernel = static_cast<KernelKind>(header.kernel);
    model.mode = static_cast<Mode>(header.mode);
    model.task = static_cast<Task>(header.task);
    model.label_kind = static_cast<LabelKind>(header.label_kind);
    model.n_features = static_cast<std::size_t>(header.n_features);
    model.n_raw_features = static_cast<std::size_t>(header.n_raw_features);
    model.half_theta = static_cast<float>(0.5 * theta);
    model.degree = static_cast<int>(header.degree);
    model.n_centers = header.n_centers;
    model.n_decisions = header.n_decisions;
    model.n_forms = model.majority_only ? std::size_t{model.n_labels} - 1 : header.n_decisions;
    model.first_remainder_degree = static_cast<int>(header.first_remainder_degree);
    return Status::ok;
}

// The section table: identifiers ascend, sections follow one another without holes, gaps are zero bytes.
inline Status read_sections(const unsigned char* bytes, std::size_t n_bytes, SectionTable& sections,
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

// Whether a section is there exactly where it is wanted.
inline bool is_where_wanted(Check& check, const Section& section, const ModelView& model, bool wanted) {
    if ((section.offset != 0) == wanted) return check.status() == Status::ok;
    const Rule rule = wanted ? Rule::needed_in_mode : Rule::none_in_mode;
    return check.refuse(field::any_size, number_of(model.task),
                        Expected{rule, stored(number_of(model.mode)), stored(number_of(model.kernel))});
}

// A section of that many bytes, or none where none is wanted.
inline bool has_size(Check& check, const Section& section, const ModelView& model, bool wanted, ClaimedSize n_bytes) {
    return is_where_wanted(check, section, model, wanted) &&
           (!wanted || check(field::any_size, section.bytes, equal_to(n_bytes)));
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm
