#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

// Writes artifacts byte by byte from models/FORMAT.md, and evaluates them in extended precision from its formulas: an
// expansion of degree 2 about one center. Nothing of the library is used here, so that reader and writer cannot share a
// mistake.

namespace artifact_writer {

using Bytes = std::vector<unsigned char>;

/// Magic, version and first_release.
constexpr unsigned char first_bytes[] = {0x89, 0x41, 0x53, 0x56, 0x4D, 0x0D, 0x0A, 0x1A, 1, 0, 1, 0};

/// Identifiers of sections.
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
    subspace_expansion = 26,
    last_section = 27
};

/// An approximate model with labels 1 and -1.
struct Model {
    double gamma = 0.5, input_scale = 1.0, intercept = 0.25, constant = 0.5, output_scale = 1.0;
    std::vector<float> center, linear, triangle;  // n x n by rows; only j >= i is used, off the diagonal doubled

    std::size_t n_features() const { return center.size(); }
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

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
    Bytes bytes;
    for (const T& value : values) append(bytes, value);
    return bytes;
}

/// The variables of every monomial of degree k in the variables first ... d - 1, in the storage order of that degree.
/// Degree 2: eight matrix rows at a time, first their triangle by columns, then their entries in every later column.
/// Higher degrees: for each first variable in turn, the monomials of one degree less in it and the later variables.
std::vector<std::vector<std::size_t>> monomials(std::size_t first, std::size_t d, int k);

/// CRC-32 of the format, with the four bytes of the checksum itself as zeros.
std::uint32_t checksum_of(const Bytes& bytes);

/// Corrects file_bytes and checksum after a change, so that a reader sees only the change itself.
void seal(Bytes& bytes);

struct Section {
    std::uint32_t identifier;
    Bytes content;
};

/// The header of an approximate classifier without sections.
Bytes header_of(const Model& model);

/// Header, section table and sections, sealed.
Bytes laid_out(Bytes header, const std::vector<Section>& sections);

/// Writes the artifact with two check rows. Their tolerance suits float32: 2 d + 64 roundings of the sum of moduli.
Bytes written(const Model& model);

// --- the meaning of the bytes ---

/// Sums of the formula for one row, in long double, and the same sums over moduli.
struct Terms {
    long double half_s = 0, inner = 0, moduli = 0;

    long double value(const Model& model) const {
        const long double scale = model.output_scale, intercept = model.intercept;
        return half_s > 87.33L ? intercept : intercept + scale * std::exp(-half_s) * inner;
    }
};

template <class Real>
Terms terms_of(const Model& model, const Real* row) {
    const std::size_t d = model.n_features();
    const long double scale = model.input_scale;
    std::vector<long double> u(d);
    Terms terms;
    for (std::size_t j = 0; j < d; ++j) {
        u[j] = (static_cast<long double>(row[j]) - model.center[j]) * scale;
        terms.half_s += model.gamma / (scale * scale) * u[j] * u[j];
    }
    terms.inner = model.constant;
    terms.moduli = std::fabs(model.constant);
    for (std::size_t i = 0; i < d; ++i) {
        long double sum = model.linear[i], moduli = std::fabs(model.linear[i]);
        for (std::size_t j = i; j < d; ++j) {
            const long double term = model.triangle[i * d + j] * u[j];
            sum += term;
            moduli += std::fabs(term);
        }
        terms.inner += u[i] * sum;
        terms.moduli += std::fabs(u[i]) * moduli;
    }
    return terms;
}

}  // namespace artifact_writer
