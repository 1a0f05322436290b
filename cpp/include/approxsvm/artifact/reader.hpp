// Reads an artifact in place (models/FORMAT.md): every MUST of the format is checked before a pointer into it
// is handed out, nothing is copied or allocated, and no byte sequence can make it read outside [bytes, bytes
// + n_bytes).
#pragma once

#include <cmath>
#include <cstring>

#include "../bounds/certificate.hpp"
#include "../expansion/decision_function.hpp"
#include "../expansion/form.hpp"
#include "../expansion/sparse.hpp"
#include "../model_view.hpp"
#include "../status.hpp"
#include "cosines_section.hpp"
#include "input_map_section.hpp"
#include "outputs_section.hpp"
#include "subspaces_section.hpp"
#include "support_vectors.hpp"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "artifacts are little-endian and are used without conversion"
#endif

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

constexpr std::uint32_t format_version = 9;
constexpr unsigned char magic[8] = {0x89, 'A', 'S', 'V', 'M', '\r', '\n', 0x1A};
constexpr std::size_t header_bytes = 192, section_entry_bytes = 24, section_alignment = 64, checksum_offset = 24;
constexpr std::size_t max_n_features = 1 << 20, check_row_bytes = 24, max_check_rows = 16, max_sections = 27;
constexpr std::size_t polynomial_header = 2;  // numbers before the forms
constexpr std::size_t presumption_header_bytes = 8;
constexpr std::size_t max_n_centers = 1 << 20, max_n_labels = 1 << 10, max_n_members = 1 << 10;
constexpr double max_input_scale = 0x1p100, max_output_scale = 0x1p1000;

namespace section {
enum Id : std::uint32_t {
    center = 1,
    decisions = 2,
    expansions = 3,
    centers = 4,
    linear = 5,
    quadratic = 6,
    higher = 7,
    direction = 8,
    router = 9,
    labels = 10,
    check_rows = 11,
    feature_names = 12,
    plan = 13,
    class_counts = 14,
    majority_classes = 15,
    dual_coef = 16,
    support_vectors = 17,
    exact_check_rows = 18,
    outputs = 19,
    input_map = 20,
    varying = 21,
    polynomial = 22,
    members = 23,
    presumption = 24,
    subspaces = 25,
    subspace_expansion = 26,
    cosines = 27
};
}

struct Section {
    std::size_t offset, bytes;  // both 0 when absent
};

// What a file's claims say that something takes, in 64 bits on every machine: a size_t of 32 bits holds no product of
// claims before it has been compared with the bytes that there are.
using ClaimedSize = std::uint64_t;

// CRC-32 as in zlib and PNG.
inline std::uint32_t crc32(const unsigned char* bytes, std::size_t n, std::uint32_t crc = 0) {
    struct Table {
        std::uint32_t entry[256];
        constexpr Table() : entry() {
            for (std::uint32_t i = 0; i < 256; ++i) {
                std::uint32_t c = i;
                for (int bit = 0; bit < 8; ++bit) c = c & 1 ? 0xEDB88320u ^ (c >> 1) : c >> 1;
                entry[i] = c;
            }
        }
    };
    static constexpr Table table{};
    crc = ~crc;
    for (std::size_t i = 0; i < n; ++i) crc = table.entry[(crc ^ bytes[i]) & 0xFF] ^ (crc >> 8);
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

inline bool all_zero(const unsigned char* first, const unsigned char* last) {
    for (; first != last; ++first) {
        if (*first != 0) return false;
    }
    return true;
}

inline bool is_power_of_two(double x, double limit) {
    int exponent;
    return x >= 1.0 / limit && x <= limit && std::frexp(x, &exponent) == 0.5;
}

// The section table: identifiers ascend, sections follow one another without holes, gaps are zero bytes.
inline Status read_sections(const unsigned char* bytes, std::size_t n_bytes, Section (&sections)[max_sections + 1]) {
    const std::size_t n_sections = read_at<std::uint32_t>(bytes, 12);
    if (n_sections > max_sections) return Status::bad_header;
    std::size_t end = header_bytes + n_sections * section_entry_bytes;
    if (n_bytes < end) return Status::truncated;
    std::uint32_t previous_id = 0;
    for (std::size_t k = 0; k < n_sections; ++k) {
        const unsigned char* entry = bytes + header_bytes + k * section_entry_bytes;
        const std::uint32_t id = read_at<std::uint32_t>(entry, 0);
        const std::uint64_t offset = read_at<std::uint64_t>(entry, 8), size = read_at<std::uint64_t>(entry, 16);
        if (id <= previous_id || id > max_sections || read_at<std::uint32_t>(entry, 4) != 0) return Status::bad_section;
        if (offset != aligned_up(end) || offset > n_bytes || size > n_bytes - offset) return Status::bad_section;
        if (!all_zero(bytes + end, bytes + offset)) return Status::bad_section;
        sections[id] = {static_cast<std::size_t>(offset), static_cast<std::size_t>(size)};
        end = static_cast<std::size_t>(offset + size);
        previous_id = id;
    }
    if (aligned_up(end) != n_bytes || !all_zero(bytes + end, bytes + n_bytes)) return Status::bad_section;
    return Status::ok;
}

inline bool is_utf8(const unsigned char* p, std::size_t n) {
    for (std::size_t i = 0; i < n;) {
        const unsigned char c = p[i];
        const std::size_t more = c < 0x80                  ? 0
                                 : (c >= 0xC2 && c < 0xE0) ? 1
                                 : (c >= 0xE0 && c < 0xF0) ? 2
                                 : (c >= 0xF0 && c < 0xF5) ? 3
                                                           : 4;
        if (more == 4 || more >= n - i) return false;
        for (std::size_t k = 1; k <= more; ++k) {
            if ((p[i + k] & 0xC0) != 0x80) return false;
        }
        if (c == 0xE0 && p[i + 1] < 0xA0) return false;  // overlong
        if (c == 0xED && p[i + 1] > 0x9F) return false;  // surrogates
        if (c == 0xF0 && p[i + 1] < 0x90) return false;  // overlong
        if (c == 0xF4 && p[i + 1] > 0x8F) return false;  // past U+10FFFF
        i += more + 1;
    }
    return true;
}

// A list of n texts: n lengths as uint32, then the UTF-8 bytes, nothing after them.
inline bool is_text_list(const unsigned char* p, std::size_t bytes, std::size_t n) {
    if (n > bytes / 4) return false;
    std::size_t used = 4 * n;
    for (std::size_t k = 0; k < n; ++k) {
        const std::size_t length = read_at<std::uint32_t>(p, 4 * k);
        if (length > bytes - used || !is_utf8(p + used, length)) return false;
        used += length;
    }
    return used == bytes;
}

// Text number k of a valid list.
struct Text {
    const char* data;
    std::size_t length;
};
inline Text text_at(const unsigned char* list, std::size_t n, std::size_t k) {
    std::size_t offset = 4 * n;
    for (std::size_t i = 0; i < k; ++i) offset += read_at<std::uint32_t>(list, 4 * i);
    return {reinterpret_cast<const char*>(list + offset), read_at<std::uint32_t>(list, 4 * k)};
}

// Whether two labels of a readable list are the same. Lists are short.
inline bool labels_are_distinct(const ModelView& model) {
    const unsigned char* p = model.labels;
    const std::size_t n = model.n_labels;
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = i + 1; j < n; ++j) {
            if (model.label_kind == LabelKind::text) {
                const Text a = text_at(p, n, i), b = text_at(p, n, j);
                if (a.length == b.length && std::memcmp(a.data, b.data, a.length) == 0) return false;
            } else if (model.label_kind == LabelKind::int64) {
                if (read_at<std::int64_t>(p, 8 * i) == read_at<std::int64_t>(p, 8 * j)) return false;
            } else if (read_at<double>(p, 8 * i) == read_at<double>(p, 8 * j)) {
                return false;
            }
        }
    }
    return true;
}

inline bool labels_are_valid(const ModelView& model, const Section& labels) {
    const std::size_t n = model.n_labels;
    if (model.task != Task::classification) return model.label_kind == LabelKind::none && n == 0 && labels.offset == 0;
    if (n < 2 || model.label_kind == LabelKind::none) return false;
    if (model.label_kind == LabelKind::text) {
        if (!is_text_list(model.labels, labels.bytes, n)) return false;
    } else if (labels.bytes != 8 * n) {
        return false;
    }
    for (std::size_t i = 0; model.label_kind == LabelKind::float64 && i < n; ++i) {
        if (!is_finite(read_at<double>(model.labels, 8 * i))) return false;
    }
    return labels_are_distinct(model);
}

// Header fields that stand alone.
inline Status read_header(const unsigned char* bytes, ModelView& model) {
    const std::uint32_t task = read_at<std::uint32_t>(bytes, 28), mode = read_at<std::uint32_t>(bytes, 32);
    const std::uint32_t degree = read_at<std::uint32_t>(bytes, 36), label_kind = read_at<std::uint32_t>(bytes, 120);
    const std::uint64_t n_features = read_at<std::uint64_t>(bytes, 40);
    model.first_index = read_at<std::uint32_t>(bytes, 56);
    model.n_labels = read_at<std::uint32_t>(bytes, 60);
    model.gamma = read_at<double>(bytes, 64) + 0.0;  // which is 0 for -0, whose sign would be that of every distance
    model.input_scale = read_at<double>(bytes, 72);
    model.tolerance = read_at<double>(bytes, 80);
    model.max_sv_norm = read_at<double>(bytes, 88);
    model.max_sv_norm_origin = read_at<double>(bytes, 96);
    const std::uint32_t n_centers = read_at<std::uint32_t>(bytes, 104),
                        n_decisions = read_at<std::uint32_t>(bytes, 108);
    const std::uint32_t first_remainder = read_at<std::uint32_t>(bytes, 112);
    const std::uint32_t center_kind = read_at<std::uint32_t>(bytes, 116);
    if (task > 2 || mode > 3 || label_kind > 3 || model.first_index > 1 || center_kind > 1) return Status::bad_header;
    const std::uint32_t kernel = read_at<std::uint32_t>(bytes, 184);
    if (kernel > (mode == 3 ? 0u : 2u) || (kernel == 2 && mode != 2)) return Status::bad_header;
    const bool polynomial = kernel == 1, cosine = kernel == 2, expanded = mode < 2 && !polynomial;
    if (cosine && (n_decisions != 1 || model.gamma != 0.0 || center_kind != 0)) return Status::bad_header;
    const std::uint32_t max_of_mode = mode == 2 ? max_kernel_degree : max_form_degree;
    if (polynomial ? degree < 1 || degree > max_of_mode || n_centers != 0 || first_remainder != 0 || center_kind != 0
        : expanded ? degree < 1 || degree > max_degree || n_centers < 1 || n_centers > max_n_centers ||
                         first_remainder <= degree || first_remainder > last_norm_degree + 1
                   : degree != 0 || n_centers != 0 || first_remainder != 0)
        return Status::bad_header;
    // Those of an ensemble are counted with its members.
    if (model.n_labels > max_n_labels || (mode != 3 && n_decisions != n_decisions_of(model.n_labels)))
        return Status::bad_header;
    if (mode == 3 && (model.gamma != 0.0 || model.input_scale != 1.0 || model.tolerance < infinity || task == 2))
        return Status::bad_header;
    model.tolerance_asked = read_at<std::uint32_t>(bytes, 140) != 0;
    const std::uint64_t n_raw_features = read_at<std::uint64_t>(bytes, 176);
    if (n_raw_features < 1 || n_raw_features > max_n_features) return Status::bad_header;
    if (n_features < 1 || n_features > max_n_features || read_at<std::uint32_t>(bytes, 140) > 1 ||
        read_at<std::uint32_t>(bytes, 188) > 1)
        return Status::bad_header;
    model.majority_only = read_at<std::uint32_t>(bytes, 188) == 1;
    if (model.majority_only && (mode != 1 || polynomial || model.n_labels <= 2 || model.tolerance < infinity))
        return Status::bad_header;
    if (!is_finite(model.gamma) || !is_power_of_two(model.input_scale, max_input_scale)) return Status::bad_header;
    if ((polynomial || cosine) && model.input_scale != 1.0) return Status::bad_header;
    if (!polynomial && !(model.gamma >= 0.0)) return Status::bad_header;
    const double theta = 2.0 * model.gamma / model.input_scale / model.input_scale;
    if (!polynomial && model.gamma > 0.0 && !(theta >= 1.0 && theta < 4.0)) return Status::bad_header;
    if (!(model.max_sv_norm >= 0.0) || !(model.max_sv_norm_origin >= 0.0) || !(model.tolerance > 0.0))
        return Status::bad_header;
    model.kernel = static_cast<KernelKind>(kernel);
    model.mode = static_cast<Mode>(mode);
    model.task = static_cast<Task>(task);
    model.label_kind = static_cast<LabelKind>(label_kind);
    model.n_features = static_cast<std::size_t>(n_features);
    model.n_raw_features = static_cast<std::size_t>(n_raw_features);
    model.half_theta = static_cast<float>(0.5 * theta);
    model.degree = static_cast<int>(degree);
    model.n_centers = n_centers;
    model.n_decisions = n_decisions;
    model.n_forms = model.majority_only ? std::size_t{model.n_labels} - 1 : n_decisions;
    model.first_remainder_degree = static_cast<int>(first_remainder);
    return Status::ok;
}

// A section of that many bytes, or nothing where the mode has no use for it.
inline bool has_size(const Section& section, bool wanted, ClaimedSize n_bytes) {
    return wanted ? section.offset != 0 && section.bytes == n_bytes : section.offset == 0;
}

// Records of amplitude, value, tolerance.
inline Status read_check_rows(const unsigned char* bytes, const Section& section, bool wanted,
                              const unsigned char*& rows, std::uint32_t& n_rows) {
    n_rows = static_cast<std::uint32_t>(section.bytes / check_row_bytes);
    rows = bytes + section.offset;
    if (!has_size(section, wanted, n_rows * check_row_bytes) || (wanted && (n_rows < 1 || n_rows > max_check_rows))) {
        return Status::bad_section;
    }
    for (std::size_t k = 0; k < 3 * std::size_t{n_rows}; ++k) {
        const double number = read_at<double>(rows, 8 * k);
        if (!is_finite(number) || (k % 3 != 1 && !(number >= 0.0))) return Status::bad_coefficient;
    }
    return Status::ok;
}

// Intercept, W, A1 and what the reader of the source rounded, of each.
inline Status read_decisions(const unsigned char* bytes, const Section& section, ModelView& model) {
    if (!has_size(section, true, model.n_decisions * sizeof(DecisionNumbers))) return Status::bad_section;
    model.decisions = reinterpret_cast<const DecisionNumbers*>(bytes + section.offset);
    for (std::size_t k = 0; k < model.n_decisions; ++k) {
        const DecisionNumbers& numbers = model.decisions[k];
        if (!is_finite(numbers.intercept) || !(numbers.total_norm >= 0.0) || !is_finite(numbers.total_norm) ||
            !(numbers.sum_moduli >= 0.0) || !is_finite(numbers.sum_moduli) || !(numbers.value_error >= 0.0) ||
            !is_finite(numbers.value_error))
            return Status::bad_coefficient;
    }
    return Status::ok;
}

inline bool is_valid(const ExpansionNumbers& numbers) {
    if (!(std::fabs(numbers.constant) <= 1.0) || !is_power_of_two(numbers.output_scale, max_output_scale)) return false;
    bool known = false;
    for (const double theta : contractions) known |= numbers.contraction == theta;
    if (!known) return false;
    const double others[] = {numbers.remainder,       numbers.coefficient_error, numbers.max_sv_norm,
                             numbers.direction_scale, numbers.direction_trace,   numbers.direction_error};
    for (const double x : numbers.norms) {
        if (!(x >= 0.0) || !is_finite(x)) return false;
    }
    for (const double& x : others) {
        if (!(x >= 0.0) || (!is_finite(x) && &x != others + 2)) return false;
    }
    return true;
}

// No number beyond its limit, and no NaN.
inline bool within(const float* numbers, std::size_t n, float limit) {
    bool valid = true;
    for (std::size_t k = 0; k < n; ++k) valid &= std::fabs(numbers[k]) <= limit;
    return valid;
}

// A section of n floats within a limit; null where it is not wanted.
inline Status read_floats(const unsigned char* bytes, const Section& section, bool wanted, ClaimedSize n, float limit,
                          const float*& floats) {
    floats = nullptr;
    if (!has_size(section, wanted, 4 * n)) return Status::bad_section;
    if (!wanted) return Status::ok;
    floats = reinterpret_cast<const float*>(bytes + section.offset);
    return within(floats, static_cast<std::size_t>(n), limit) ? Status::ok : Status::bad_coefficient;
}

// Every list starts behind the one before and holds at least one panel; every slot names a center.
inline Status read_router(const unsigned char* bytes, const Section& section, ModelView& model) {
    const bool wanted = model.n_centers > 1;
    model.router = RouterView{};
    if ((section.offset != 0) != wanted) return Status::bad_section;
    if (!wanted) return Status::ok;
    if (section.bytes < 8) return Status::bad_section;
    const unsigned char* p = bytes + section.offset;
    const std::size_t n_groups = read_at<std::uint32_t>(p, 0), n_panels = read_at<std::uint32_t>(p, 4);
    // No claim may make the sizes below overflow.
    if (n_groups < 1 || n_groups > model.n_centers || n_groups > section.bytes / 4 || n_panels > section.bytes / 64)
        return Status::bad_section;
    const ClaimedSize lists_end = 4 * (2 + ClaimedSize{n_groups} + 1 + ClaimedSize{router_width} * n_panels);
    if (lists_end > section.bytes) return Status::bad_section;
    const std::size_t end = static_cast<std::size_t>(lists_end), head = aligned_up(end);
    const std::size_t panel_bytes = 4 * router_panel_floats(model.n_features);
    const std::size_t all_panels = router_panels(n_groups) + n_panels;
    if (head > section.bytes || all_panels > section.bytes / panel_bytes ||
        section.bytes != head + all_panels * panel_bytes)
        return Status::bad_section;
    const std::uint32_t* starts = reinterpret_cast<const std::uint32_t*>(p + 8);
    const std::uint32_t* members = starts + n_groups + 1;
    if (starts[0] != 0 || starts[n_groups] != n_panels || router_panels(n_groups) > max_group_panels)
        return Status::bad_section;
    for (std::size_t g = 0; g < n_groups; ++g) {
        if (starts[g + 1] <= starts[g] || starts[g + 1] - starts[g] > max_group_panels) return Status::bad_section;
    }
    for (std::size_t k = 0; k < router_width * n_panels; ++k) {
        if (members[k] >= model.n_centers) return Status::bad_section;
    }
    if (!all_zero(p + end, p + head)) return Status::bad_section;
    const float* panels = reinterpret_cast<const float*>(p + head);
    const std::size_t panel_floats = router_panel_floats(model.n_features);
    if (!within(panels, all_panels * panel_floats, largest_float)) return Status::bad_coefficient;
    model.router = {n_groups, starts, members, panels, panels + router_panels(n_groups) * panel_floats};
    return Status::ok;
}

// Columns that ascend, fewer than there are features. Only with many centers there is one that has a row's other
// features, and only certified models have an answer for rows that no center is good for.
inline Status read_varying(const unsigned char* bytes, const Section& section, ModelView& model) {
    model.n_varying = model.n_features;
    model.varying = nullptr;
    if (section.offset == 0) return Status::ok;
    const std::size_t n = section.bytes / 4;
    if (model.mode != Mode::certified || model.n_centers < 2 || n < 1 || n >= model.n_features ||
        section.bytes != 4 * n)
        return Status::bad_section;
    model.n_varying = n;
    model.varying = reinterpret_cast<const std::uint32_t*>(bytes + section.offset);
    for (std::size_t k = 0; k < n; ++k) {
        if (model.varying[k] >= model.n_features || (k > 0 && model.varying[k] <= model.varying[k - 1]))
            return Status::bad_section;
    }
    return Status::ok;
}

// The coefficients of the expansions, scaled by the writer so that none of degree k exceeds k! in modulus: with s
// bounded, no sum can then overflow.
inline Status read_expansions(const unsigned char* bytes, const Section* sections, ModelView& model) {
    const ClaimedSize d = model.n_features, n = model.n_centers, v = model.n_varying;
    // Sizes are checked one factor at a time: a product of claims must not overflow.
    const ClaimedSize limit = ClaimedSize{1} << 46, n_all = n * model.n_forms;
    if (n_all >= limit || n_higher_limited(v, model.degree, limit / (n_all + 1)) * (n_all + 1) >= limit)
        return Status::bad_section;
    Status status = read_floats(bytes, sections[section::center], true, d, largest_float, model.center);
    if (status != Status::ok) return status;
    status = read_floats(bytes, sections[section::centers], n > 1, n * d, largest_float, model.centers);
    if (status != Status::ok) return status;
    if (n == 1) model.centers = model.center;
    status = read_floats(bytes, sections[section::linear], n > 0, n_all * v, 1.0f, model.linear);
    if (status != Status::ok) return status;
    const ClaimedSize n_triangles = n_all * triangle_size(v);
    status = read_floats(bytes, sections[section::quadratic], model.degree >= 2, n_triangles, 2.0f, model.quadratic);
    if (status != Status::ok) return status;
    status = read_floats(bytes, sections[section::higher], model.degree > 2, n_all * n_higher(v, model.degree), 720.0f,
                         model.higher);
    if (status != Status::ok) return status;
    const bool directed = sections[section::direction].offset != 0;
    const bool may_be = model.mode == Mode::certified && model.degree == 2 && model.n_decisions == 1;
    if (directed && !may_be) return Status::bad_section;
    status = read_floats(bytes, sections[section::direction], directed, n_triangles, 2.0f, model.direction);
    if (status != Status::ok) return status;
    const Section& numbers = sections[section::expansions];
    if (!has_size(numbers, n > 0, n_all * sizeof(ExpansionNumbers))) return Status::bad_section;
    model.expansions = reinterpret_cast<const ExpansionNumbers*>(bytes + numbers.offset);
    for (std::size_t e = 0; e < n_all; ++e) {
        if (!is_valid(model.expansions[e])) return Status::bad_coefficient;
    }
    const Section& majority_classes = sections[section::majority_classes];
    if (!has_size(majority_classes, n > 0 && model.n_labels > 2, 4 * n)) return Status::bad_section;
    model.majority_classes = reinterpret_cast<const std::uint32_t*>(bytes + majority_classes.offset);
    for (std::size_t c = 0; majority_classes.offset != 0 && c < n; ++c) {
        if (model.majority_classes[c] >= model.n_labels) return Status::bad_section;
    }
    return read_router(bytes, sections[section::router], model);
}

// Nothing that an expansion needs is there.
inline Status read_no_expansions(const Section* sections, ModelView& model) {
    constexpr section::Id of_expansions[] = {section::center,           section::expansions, section::centers,
                                             section::linear,           section::quadratic,  section::higher,
                                             section::direction,        section::router,     section::check_rows,
                                             section::majority_classes, section::varying};
    for (const section::Id id : of_expansions) {
        if (sections[id].offset != 0) return Status::bad_section;
    }
    model.n_varying = model.n_features;
    model.varying = nullptr;
    model.center = model.centers = model.linear = model.quadratic = model.higher = model.direction = nullptr;
    model.expansions = nullptr;
    model.majority_classes = nullptr;
    model.router = RouterView{};
    return Status::ok;
}

// coef0, by how much coefficients may be off and, but in mode exact, the form of each decision function.
inline Status read_polynomial(const unsigned char* bytes, const Section* sections, ModelView& model) {
    const Section& section = sections[section::polynomial];
    // At most 2^19 forms of less than 2^40 numbers.
    const ClaimedSize size = model.mode == Mode::exact ? 0 : form_size(ClaimedSize{model.n_features}, model.degree),
                      n_numbers = polynomial_header + model.n_decisions * size;
    if (!has_size(section, true, 8 * n_numbers)) return Status::bad_section;
    const double* numbers = reinterpret_cast<const double*>(bytes + section.offset);
    if (!all_finite(numbers, 1, static_cast<std::size_t>(n_numbers))) return Status::bad_coefficient;
    model.coef0 = numbers[0];
    model.coef_error = numbers[1];
    model.form = size == 0 ? nullptr : numbers + polynomial_header;
    if (!(model.coef_error >= 0.0)) return Status::bad_coefficient;
    for (std::size_t k = 0; model.form && k < model.n_decisions; ++k) {
        const double* form = model.form + k * static_cast<std::size_t>(size);
        if (!(form[form_part::constant_error] >= 0.0) || !(form[form_part::linear_error] >= 0.0) ||
            !(form[form_part::quadratic_error] >= 0.0))
            return Status::bad_coefficient;
    }
    return Status::ok;
}

// The expansions of a Gaussian kernel.
inline Status read_gaussian(const unsigned char* bytes, const Section* sections, ModelView& model) {
    model.form = nullptr;
    model.coef0 = model.coef_error = 0.0;
    const Status status = read_varying(bytes, sections[section::varying], model);
    return status == Status::ok ? read_expansions(bytes, sections, model) : status;
}

// The support vectors and their coefficients.
inline Status read_exact_model(const unsigned char* bytes, const Section* sections, ModelView& model) {
    const Section &coef = sections[section::dual_coef], &vectors = sections[section::support_vectors];
    const Section& counts = sections[section::class_counts];
    const bool wanted = model.mode != Mode::approximate && !is_cosine(model), classes = model.n_labels > 2;
    const std::size_t n_rows = classes ? std::size_t{model.n_labels} - 1 : 1;
    model.n_sv = wanted ? coef.bytes / 8 / n_rows : 0;
    model.dual_coef = reinterpret_cast<const double*>(bytes + coef.offset);
    model.packed = PackedVectors{};
    if (!has_size(coef, wanted, 8 * n_rows * model.n_sv) || (vectors.offset != 0) != wanted) return Status::bad_section;
    if (!has_size(counts, wanted && classes, 4 * std::size_t{model.n_labels})) return Status::bad_section;
    model.class_counts = reinterpret_cast<const std::uint32_t*>(bytes + counts.offset);
    ClaimedSize n_counted = 0;
    for (std::size_t c = 0; counts.offset != 0 && c < model.n_labels; ++c) n_counted += model.class_counts[c];
    if (counts.offset != 0 && n_counted != model.n_sv) return Status::bad_section;
    for (std::size_t i = 0; i < n_rows * model.n_sv; ++i) {
        if (!is_finite(model.dual_coef[i])) return Status::bad_coefficient;
    }
    if (!wanted) return Status::ok;
    PackedVectorsParser parser(bytes + vectors.offset, vectors.bytes);
    return parser.parse(model.n_sv, model.n_features, model.packed) ? Status::ok : Status::bad_support_vectors;
}

// The network that presumes who wins.
inline Status read_presumption(const unsigned char* bytes, const Section& section, ModelView& model) {
    if (section.offset == 0) return Status::ok;
    if (model.mode == Mode::approximate || model.n_labels <= 2 || model.kernel != KernelKind::gaussian ||
        section.bytes < presumption_header_bytes)
        return Status::bad_section;
    const unsigned char* const start = bytes + section.offset;
    model.n_landmarks = read_at<std::uint32_t>(start, 0);
    if (read_at<std::uint32_t>(start, 4) != 0 || model.n_landmarks > model.n_sv) return Status::bad_section;
    // At most 2^42 numbers of rows, and as many of landmarks.
    const std::size_t n_rows = 1 + model.n_features + model.n_landmarks, n_indices = (model.n_landmarks + 1) / 2 * 2;
    const ClaimedSize n_numbers = ClaimedSize{n_rows} * model.n_labels;
    if (section.bytes != presumption_header_bytes + 4 * (n_indices + n_numbers)) return Status::bad_section;
    model.landmarks = reinterpret_cast<const std::uint32_t*>(start + presumption_header_bytes);
    for (std::size_t m = 0; m < n_indices; ++m) {
        if (m < model.n_landmarks ? model.landmarks[m] >= model.n_sv : model.landmarks[m] != 0)
            return Status::bad_section;
    }
    model.presumption = reinterpret_cast<const float*>(model.landmarks + n_indices);
    return all_finite(model.presumption, 1, static_cast<std::size_t>(n_numbers)) ? Status::ok : Status::bad_coefficient;
}

inline Status describe_artifact(const unsigned char* bytes, std::size_t n_bytes, ModelView& model);
inline Status check_envelope(const unsigned char* bytes, std::size_t n_bytes);

// An expansion in the coordinates of a subspace: a whole artifact of its own, of a regression with one center at the
// origin.
inline Status check_subspace_expansion(const unsigned char* bytes, std::size_t n_bytes, const ModelView& outer) {
    const Status status = n_bytes < header_bytes ? Status::truncated : check_envelope(bytes, n_bytes);
    if (status != Status::ok) return status;
    if (read_at<std::uint32_t>(bytes, 32) != static_cast<std::uint32_t>(Mode::approximate)) return Status::bad_section;
    ModelView inner;
    const Status described = describe_artifact(bytes, n_bytes, inner);
    if (described != Status::ok) return described;
    bool at_origin = inner.kernel == KernelKind::gaussian && inner.n_centers == 1;
    for (std::size_t j = 0; at_origin && j < inner.n_features; ++j) at_origin = inner.center[j] == 0.0f;
    return at_origin && inner.task == Task::regression && !inner.has_input_map && inner.gamma == outer.gamma &&
                   inner.input_scale == outer.input_scale && inner.n_features == outer.subspaces.coordinates[0] &&
                   inner.decisions[0].intercept == 0.0
               ? Status::ok
               : Status::bad_section;
}

// The stages in few coordinates.
inline Status read_all_subspaces(const unsigned char* bytes, const Section* sections, ModelView& model) {
    const Section &subspaces = sections[section::subspaces], &expansion = sections[section::subspace_expansion];
    const unsigned char* const expanded = expansion.offset != 0 ? bytes + expansion.offset : nullptr;
    const Status status =
        read_subspaces(subspaces.offset != 0 ? bytes + subspaces.offset : nullptr, subspaces.bytes, expanded, model);
    return status == Status::ok && expanded ? check_subspace_expansion(expanded, expansion.bytes, model) : status;
}

// Labels, names of raw columns, and the plan.
inline Status read_labels_and_texts(const unsigned char* bytes, const Section* sections, ModelView& model) {
    model.labels = bytes + sections[section::labels].offset;
    if (!labels_are_valid(model, sections[section::labels])) return Status::bad_labels;
    const Section& names = sections[section::feature_names];
    if (names.offset != 0 && !is_text_list(bytes + names.offset, names.bytes, model.n_raw_features))
        return Status::bad_labels;
    const Section& plan = sections[section::plan];
    if (plan.offset != 0 && !is_utf8(bytes + plan.offset, plan.bytes)) return Status::bad_labels;
    return Status::ok;
}

// What each kind of kernel has instead of the others'.
inline Status read_kernel(const unsigned char* bytes, const Section* sections, ModelView& model) {
    const bool polynomial = model.kernel == KernelKind::polynomial;
    const Section& cosines = sections[section::cosines];
    if (!polynomial && sections[section::polynomial].offset != 0) return Status::bad_section;
    if (!is_cosine(model) && cosines.offset != 0) return Status::bad_section;
    if (model.kernel == KernelKind::gaussian) return read_gaussian(bytes, sections, model);
    const Status status = read_no_expansions(sections, model);
    if (status != Status::ok) return status;
    if (polynomial) return read_polynomial(bytes, sections, model);
    return read_cosines(cosines.offset != 0 ? bytes + cosines.offset : nullptr, cosines.bytes, model);
}

// All sections of a model that is no ensemble.
inline Status read_model(const unsigned char* bytes, const Section* sections, ModelView& model) {
    model.has_input_map = sections[section::input_map].offset != 0;
    const Section& outputs = sections[section::outputs];
    Status status = read_outputs(outputs.offset != 0 ? bytes + outputs.offset : nullptr, outputs.bytes, model.task,
                                 model.n_labels, model.outputs);
    if (status != Status::ok) return status;
    const Section& map = sections[section::input_map];
    status = read_input_map(model.has_input_map ? bytes + map.offset : nullptr, map.bytes, model.n_raw_features,
                            model.n_features, model.input_map);
    if (status != Status::ok) return status;
    status = read_kernel(bytes, sections, model);
    if (status != Status::ok) return status;
    const bool polynomial = model.kernel == KernelKind::polynomial;
    status = read_exact_model(bytes, sections, model);
    if (status != Status::ok) return status;
    status = read_presumption(bytes, sections[section::presumption], model);
    if (status != Status::ok) return status;
    status = read_all_subspaces(bytes, sections, model);
    if (status != Status::ok) return status;
    status = read_decisions(bytes, sections[section::decisions], model);
    if (status != Status::ok) return status;
    const Section &check = sections[section::check_rows], &exact_check = sections[section::exact_check_rows];
    status =
        read_check_rows(bytes, check, model.mode != Mode::exact && !polynomial, model.check_rows, model.n_check_rows);
    if (status != Status::ok) return status;
    return read_check_rows(bytes, exact_check, model.mode != Mode::approximate || polynomial, model.exact_check_rows,
                           model.n_exact_check_rows);
}

// --- members of an ensemble

// Calls visit(member) for each in turn while it says ok; they have been validated.
template <class Visit>
inline Status for_members(const ModelView& ensemble, const Visit& visit) {
    const unsigned char* bytes = ensemble.members;
    for (std::size_t k = 0; k < ensemble.n_members; ++k) {
        const std::size_t n_bytes = static_cast<std::size_t>(read_at<std::uint64_t>(bytes, 16));
        ModelView member;
        Status status = describe_artifact(bytes, n_bytes, member);
        if (status == Status::ok) status = visit(member);
        if (status != Status::ok) return status;
        bytes += n_bytes;
    }
    return Status::ok;
}

inline bool labels_are_equal(const ModelView& a, const ModelView& b) {
    if (a.label_kind != b.label_kind || a.n_labels != b.n_labels) return false;
    std::size_t n_bytes = 8 * std::size_t{a.n_labels};
    if (a.label_kind == LabelKind::text) {
        n_bytes = 4 * std::size_t{a.n_labels};
        for (std::size_t k = 0; k < a.n_labels; ++k) {
            if (read_at<std::uint32_t>(a.labels, 4 * k) != read_at<std::uint32_t>(b.labels, 4 * k)) return false;
            n_bytes += read_at<std::uint32_t>(a.labels, 4 * k);
        }
    }
    return n_bytes == 0 || std::memcmp(a.labels, b.labels, n_bytes) == 0;
}

inline Status check_member(const unsigned char* bytes, std::size_t n_bytes, const ModelView& ensemble) {
    Status status = check_envelope(bytes, n_bytes);
    if (status != Status::ok) return status;
    if (read_at<std::uint32_t>(bytes, 32) == static_cast<std::uint32_t>(Mode::ensemble)) return Status::bad_section;
    ModelView member;
    status = describe_artifact(bytes, n_bytes, member);
    if (status != Status::ok) return status;
    if (member.task != ensemble.task || member.n_raw_features != ensemble.n_raw_features ||
        !labels_are_equal(member, ensemble))
        return Status::bad_labels;
    return ensemble.task == Task::regression || member.outputs.probability != ProbabilityKind::none
               ? Status::ok
               : Status::bad_section;
}

// Whole artifacts one after the other, none of them an ensemble, which agree on labels and raw columns.
inline Status read_members(const unsigned char* bytes, const Section* sections, ModelView& model) {
    for (std::uint32_t id = 1; id <= max_sections; ++id) {
        const bool allowed = id == section::labels || id == section::feature_names || id == section::plan;
        if (sections[id].offset != 0 && !allowed && id != section::members) return Status::bad_section;
    }
    const Section& section = sections[section::members];
    if (section.offset == 0) return Status::bad_section;
    model.members = bytes + section.offset;
    for (std::size_t at = 0; at < section.bytes; ++model.n_members) {
        const unsigned char* member = model.members + at;
        const std::size_t left = section.bytes - at;
        if (left < header_bytes || model.n_members == max_n_members) return Status::bad_section;
        const std::uint64_t n_bytes = read_at<std::uint64_t>(member, 16);
        if (n_bytes > left || n_bytes % section_alignment != 0) return Status::bad_section;
        const Status status = check_member(member, static_cast<std::size_t>(n_bytes), model);
        if (status != Status::ok) return status;
        at += static_cast<std::size_t>(n_bytes);
    }
    const bool averages = model.task == Task::classification;
    if (model.n_members < 1 || model.n_decisions != (averages ? 0 : model.n_members)) return Status::bad_header;
    return model.n_features == model.n_raw_features ? Status::ok : Status::bad_header;
}

// Everything behind the header's checksum. The bytes are those of a whole artifact.
inline Status describe_artifact(const unsigned char* bytes, std::size_t n_bytes, ModelView& model) {
    model = ModelView{};
    Status status = read_header(bytes, model);
    if (status != Status::ok) return status;
    Section sections[max_sections + 1] = {};
    status = read_sections(bytes, n_bytes, sections);
    if (status != Status::ok) return status;
    if (model.mode != Mode::ensemble) {
        if (sections[section::members].offset != 0) return Status::bad_section;
        status = read_model(bytes, sections, model);
        return status == Status::ok ? read_labels_and_texts(bytes, sections, model) : status;
    }
    status = read_labels_and_texts(bytes, sections, model);
    return status == Status::ok ? read_members(bytes, sections, model) : status;
}

// Magic bytes, version, size and checksum.
inline Status check_envelope(const unsigned char* bytes, std::size_t n_bytes) {
    const std::size_t n_magic = n_bytes < sizeof magic ? n_bytes : sizeof magic;
    if (n_magic == 0 || std::memcmp(bytes, magic, n_magic) != 0) return Status::bad_magic;
    if (n_bytes < header_bytes) return Status::truncated;
    if (read_at<std::uint32_t>(bytes, 8) != format_version) return Status::unsupported_version;
    if (read_at<std::uint64_t>(bytes, 16) != n_bytes) return Status::size_mismatch;
    return read_at<std::uint32_t>(bytes, checksum_offset) == artifact_checksum(bytes, n_bytes)
               ? Status::ok
               : Status::checksum_mismatch;
}

// Validates an artifact and describes it. `bytes` must stay alive and unchanged for as long as `model` is used.
inline Status open_artifact(const void* data, std::size_t n_bytes, ModelView& model) {
    const unsigned char* bytes = static_cast<const unsigned char*>(data);
    if (reinterpret_cast<std::uintptr_t>(bytes) % 8 != 0) return Status::misaligned;
    const Status status = check_envelope(bytes, n_bytes);
    return status == Status::ok ? describe_artifact(bytes, n_bytes, model) : status;
}

// --- check rows

// The generator of Steele, Lea and Flood (SplitMix64): one 64-bit number per call.
inline std::uint64_t splitmix64(std::uint64_t& state) {
    std::uint64_t x = state += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

// Check row k as the format defines it: center_j + amplitude / input_scale * (integer in [-128, 127]) / 128
// in float32.
inline void make_check_row(const ModelView& model, const float* center, const unsigned char* records, std::uint32_t k,
                           float* row) {
    const double amplitude = read_at<double>(records, k * check_row_bytes);
    std::uint64_t state = k;
    for (std::size_t j = 0; j < model.n_features; ++j) {
        const int step = static_cast<int>(splitmix64(state) >> 56) - 128;
        row[j] = center[j] + static_cast<float>(step * (amplitude / 128.0 / model.input_scale));
    }
}

// Check row k of n_rows is about one of the centers and of one of the decision functions: spread over all of them.
constexpr std::size_t check_row_position(std::size_t n_all, std::uint32_t k, std::uint32_t n_rows) {
    return static_cast<std::size_t>(std::uint64_t{k} * n_all / n_rows);
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm
