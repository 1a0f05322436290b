#include "artifact_writer.hpp"

namespace artifact_writer {

std::vector<float> packed(const std::vector<float>& triangle, std::size_t d) {
    std::vector<float> result;
    for (std::size_t p = 0; p < d; p += 8) {
        for (std::size_t column = p; column < d; ++column) {
            for (std::size_t row = p; row < p + 8 && row <= column; ++row) {
                result.push_back(triangle[row * d + column]);
            }
        }
    }
    return result;
}

std::vector<std::vector<std::size_t>> monomials(std::size_t first, std::size_t d, int k) {
    std::vector<std::vector<std::size_t>> result;
    if (k == 2) {
        for (std::size_t p = first; p < d; p += 8) {
            for (std::size_t column = p; column < d; ++column) {
                for (std::size_t row = p; row < p + 8 && row <= column; ++row) result.push_back({row, column});
            }
        }
        return result;
    }
    for (std::size_t i = first; i < d; ++i) {
        for (std::vector<std::size_t>& rest : monomials(i, d, k - 1)) {
            rest.insert(rest.begin(), i);
            result.push_back(std::move(rest));
        }
    }
    return result;
}

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

Bytes packed_vectors(const std::vector<std::vector<double>>& vectors) {
    Bytes bytes(24);  // dense, of float64, no dictionary
    for (const std::vector<double>& vector : vectors) {
        for (const double value : vector) append(bytes, value);
    }
    put(bytes, 16, static_cast<std::uint64_t>((bytes.size() - 24) / sizeof(double)));
    return bytes;
}

Bytes record_of(const Expansion& expansion) {
    Bytes bytes;
    for (const double number : {expansion.constant, expansion.output_scale}) append(bytes, number);
    for (const double norm : expansion.norms) append(bytes, norm);
    for (const double number :
         {expansion.remainder, expansion.contraction, expansion.coefficient_error, expansion.max_sv_norm,
          expansion.direction_scale, expansion.direction_trace, expansion.direction_error}) {
        append(bytes, number);
    }
    return bytes;
}

Bytes bytes_of_router(const Router& router) {
    Bytes bytes;
    append(bytes, router.n_groups);
    append(bytes, router.n_panels);
    for (const std::uint32_t start : router.starts) append(bytes, start);
    for (const std::uint32_t member : router.members) append(bytes, member);
    bytes.resize((bytes.size() + 63) / 64 * 64);
    for (const float number : router.panels) append(bytes, number);
    return bytes;
}

std::vector<Section> sections_of(const Model& model) {
    const std::size_t v = model.varying_columns().size();
    const bool expanded = model.is_expanded();
    std::vector<Section> sections;
    sections.push_back({center, bytes_of(model.center)});
    sections.push_back({decisions, bytes_of(std::vector<double>{model.intercept, model.total_norm, model.sum_moduli,
                                                                model.value_error})});
    const auto add = [&](std::uint32_t identifier, const auto& get_bytes) {
        sections.push_back({identifier, for_all_centers(model, get_bytes)});
    };
    const bool many = expanded && model.expansions.size() > 1;
    if (expanded) add(expansions, record_of);
    if (many) add(centers, [](const Expansion& e) { return bytes_of(e.center); });
    if (expanded) add(linear, [](const Expansion& e) { return bytes_of(e.linear); });
    if (expanded && model.degree >= 2)
        add(quadratic, [=](const Expansion& e) { return bytes_of(packed(e.triangle, v)); });
    if (expanded && model.degree > 2) add(higher, [](const Expansion& e) { return bytes_of(e.higher); });
    if (many) sections.push_back({router, bytes_of_router(model.router)});
    if (!model.labels.empty()) sections.push_back({labels, model.labels});
    if (expanded) sections.push_back({check_rows, bytes_of(model.check_rows)});
    if (model.mode != approximate) {
        sections.push_back({dual_coef, bytes_of(model.dual_coef)});
        sections.push_back({support_vectors, packed_vectors(model.support_vectors)});
        sections.push_back({exact_check_rows, bytes_of(model.exact_check_rows)});
    }
    if (!model.varying.empty()) sections.push_back({varying, bytes_of(model.varying)});
    return sections;
}

Bytes header_of(const Model& model, std::size_t n_sections) {
    const bool expanded = model.is_expanded();
    Bytes bytes(std::begin(first_bytes), std::end(first_bytes));
    append(bytes, static_cast<std::uint32_t>(n_sections));
    append(bytes, std::uint64_t{0});  // file_bytes
    append(bytes, std::uint32_t{0});  // checksum
    append(bytes, model.task);
    append(bytes, model.mode);
    append(bytes, expanded || model.kernel == 1 ? model.degree : 0u);
    append(bytes, std::uint64_t{model.n_features()});
    append(bytes, std::uint64_t{3});  // n_support_vectors, which nobody reads
    append(bytes, model.first_index);
    append(bytes, model.n_labels);
    for (const double number :
         {model.gamma, model.input_scale, model.tolerance, model.max_sv_norm, model.max_sv_norm_origin}) {
        append(bytes, number);
    }
    append(bytes, static_cast<std::uint32_t>(model.n_centers()));
    append(bytes, std::uint32_t{1});  // n_decisions
    append(bytes, expanded ? model.first_remainder_degree : 0u);
    append(bytes, model.center_kind);
    append(bytes, model.label_kind);
    const char* const dtypes[] = {"", "<i8", "<f8", "|O"};
    const std::string dtype = dtypes[model.label_kind < 4 ? model.label_kind : 0];
    bytes.insert(bytes.end(), dtype.begin(), dtype.end());
    bytes.resize(176);                                 // label_dtype, tolerance_asked, source
    append(bytes, std::uint64_t{model.n_features()});  // n_raw_features
    append(bytes, model.kernel);
    bytes.resize(192);
    return bytes;
}

Bytes laid_out(const Model& model, const std::vector<Section>& sections) {
    return laid_out(header_of(model, sections.size()), sections);
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

std::vector<float> synthetic_row(const Model& model, const std::vector<float>& from, double amplitude,
                                 std::uint64_t k) {
    std::vector<float> row(model.n_features());
    for (std::size_t j = 0; j < row.size(); ++j) {
        std::uint64_t x = k + 0x9E3779B97F4A7C15u * (j + 1);
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
        x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
        const int step = static_cast<int>((x ^ (x >> 31)) >> 56) - 128;
        row[j] = from[j] + static_cast<float>(step * (amplitude / 128 / model.input_scale));
    }
    return row;
}

void add_exact_check_rows(Model& model, std::size_t n_rows) {
    const double d = static_cast<double>(model.n_features()), amplitude = 1.0 / std::sqrt(d);
    double sum_moduli = 0;
    for (const double a : model.dual_coef) sum_moduli += std::fabs(a);
    model.exact_check_rows.clear();
    for (std::size_t k = 0; k < n_rows; ++k) {
        const long double value = exact_value(model, synthetic_row(model, model.center, amplitude, k).data());
        const double tolerance = (4 * d + 64) * 0x1p-44 * sum_moduli + 0x1p-48 * std::fabs(model.intercept);
        for (const double number : {amplitude, static_cast<double>(value), tolerance}) {
            model.exact_check_rows.push_back(number);
        }
    }
}

void add_check_rows(Model& model, std::size_t n_rows) {
    const double d = static_cast<double>(model.n_features());
    const double amplitude = 1.0 / std::sqrt(d);
    model.check_rows.clear();
    for (std::size_t k = 0; k < n_rows; ++k) {
        const std::size_t c = k * model.expansions.size() / n_rows;
        const Terms terms = terms_of(model, synthetic_row(model, model.center_of(c), amplitude, k).data(), c);
        const double scale = model.expansions[c].output_scale * std::exp(-static_cast<double>(terms.half_s));
        const double tolerance =
            (std::max(2u, model.degree) * d + 64) * 0x1p-23 * scale * static_cast<double>(terms.moduli);
        for (const double number :
             {amplitude, static_cast<double>(terms.value(model)), tolerance + 0x1p-50 * std::fabs(model.intercept)}) {
            model.check_rows.push_back(number);
        }
    }
}

}  // namespace artifact_writer
