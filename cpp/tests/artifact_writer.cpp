#include "artifact_writer.hpp"

#include <iterator>
#include <limits>

namespace artifact_writer {

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

void seal(Bytes& bytes) {
    put(bytes, 16, static_cast<std::uint64_t>(bytes.size()));
    put(bytes, 24, checksum_of(bytes));
}

Bytes header_of(const Model& model) {
    Bytes bytes(std::begin(first_bytes), std::end(first_bytes));
    bytes.resize(28);                                // n_sections, file_bytes, checksum
    for (const std::uint32_t number : {0u, 0u, 2u})  // classification, approximate, degree
        append(bytes, number);
    append(bytes, std::uint64_t{model.n_features()});
    append(bytes, std::uint64_t{3});                                    // n_support_vectors, which nobody reads
    for (const std::uint32_t number : {1u, 2u}) append(bytes, number);  // first_index, n_labels
    constexpr double infinity = std::numeric_limits<double>::infinity();
    for (const double number : {model.gamma, model.input_scale, infinity, 1.5, 2.5})  // tolerance, max_sv_norm
        append(bytes, number);
    // n_centers, n_decisions, first_remainder_degree, center_kind, label_kind
    for (const std::uint32_t number : {1u, 1u, 9u, 1u, 1u}) append(bytes, number);
    for (const char letter : {'<', 'i', '8'}) append(bytes, letter);
    bytes.resize(176);                                 // label_dtype, tolerance_asked, source
    append(bytes, std::uint64_t{model.n_features()});  // n_raw_features
    bytes.resize(192);                                 // kernel
    return bytes;
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

namespace {

/// Synthetic row number k, as the format defines it.
std::vector<float> synthetic_row(const Model& model, double amplitude, std::uint64_t k) {
    std::vector<float> row(model.n_features());
    for (std::size_t j = 0; j < row.size(); ++j) {
        std::uint64_t x = k + 0x9E3779B97F4A7C15u * (j + 1);
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
        x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
        const int step = static_cast<int>((x ^ (x >> 31)) >> 56) - 128;
        row[j] = model.center[j] + static_cast<float>(step * (amplitude / 128 / model.input_scale));
    }
    return row;
}

}  // namespace

Bytes written(const Model& model) {
    const std::size_t d = model.n_features();
    const double amplitude = 1.0 / std::sqrt(static_cast<double>(d));
    std::vector<double> rows, record(18, 1.0);                                     // norms and errors
    record[0] = model.constant, record[1] = model.output_scale, record[14] = 1.5;  // max_sv_norm
    std::vector<float> packed;
    for (const std::vector<std::size_t>& pair : monomials(0, d, 2))
        packed.push_back(model.triangle[pair[0] * d + pair[1]]);
    for (std::uint64_t k = 0; k < 2; ++k) {
        const Terms terms = terms_of(model, synthetic_row(model, amplitude, k).data());
        const long double moduli = model.output_scale * std::exp(-terms.half_s) * terms.moduli;
        rows.push_back(amplitude);
        rows.push_back(static_cast<double>(terms.value(model)));
        rows.push_back(static_cast<double>((2 * d + 64) * 0x1p-23L * moduli + 0x1p-50L * std::fabs(model.intercept)));
    }
    return laid_out(header_of(model), {{center, bytes_of(model.center)},
                                       {decisions, bytes_of(std::vector<double>{model.intercept, 1.0, 1.0, 0.0})},
                                       {expansions, bytes_of(record)},
                                       {linear, bytes_of(model.linear)},
                                       {quadratic, bytes_of(packed)},
                                       {labels, bytes_of(std::vector<std::int64_t>{1, -1})},
                                       {check_rows, bytes_of(rows)}});
}

}  // namespace artifact_writer
