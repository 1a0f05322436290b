#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <vector>

// Writes artifacts byte by byte from models/FORMAT.md, and evaluates them in extended precision from its formulas.
// Nothing of the library is used here, so that reader and writer cannot share a mistake.

namespace artifact_writer {

using Bytes = std::vector<unsigned char>;

/// Magic, version and first_release.
constexpr unsigned char first_bytes[] = {0x89, 0x41, 0x53, 0x56, 0x4D, 0x0D, 0x0A, 0x1A, 1, 0, 1, 0};

/// Heap memory of exactly n bytes, so that AddressSanitizer sees the first byte read past either end.
class ExactCopy {
  public:
    explicit ExactCopy(const Bytes& bytes, std::size_t n_bytes) : data_(new unsigned char[n_bytes]) {
        if (n_bytes > 0) std::memcpy(data_.get(), bytes.data(), n_bytes);
    }
    explicit ExactCopy(const Bytes& bytes) : ExactCopy(bytes, bytes.size()) {}
    const unsigned char* data() const { return data_.get(); }

  private:
    std::unique_ptr<unsigned char[]> data_;
};

enum ModeNumber : std::uint32_t { approximate = 0, certified = 1, exact = 2 };

/// Identifiers of sections.
enum SectionNumber : std::uint32_t {
    center = 1,
    decisions,
    expansions,
    centers,
    linear,
    quadratic,
    higher,
    direction,
    router,
    labels,
    check_rows,
    feature_names,
    plan,
    class_counts,
    majority_classes,
    dual_coef,
    support_vectors,
    exact_check_rows,
    outputs,
    input_map,
    varying,
    polynomial,
    members,
    presumption,
    subspaces,
    subspace_expansion,
    cosines
};

/// What belongs to one center.
struct Expansion {
    std::vector<float> center;  // of a model with many
    double constant = 0.5, output_scale = 1.0;
    std::vector<double> norms = std::vector<double>(9, 1.0);
    double remainder = 1.0, contraction = 1.0, coefficient_error = 1.0, max_sv_norm = 1.5;
    double direction_scale = 1.0, direction_trace = 1.0, direction_error = 1.0;
    std::vector<float> linear;
    std::vector<float> triangle;  // v x v by rows; only j >= i is used, off-diagonal entries already doubled
    std::vector<float> higher;    // degree 3, then 4, ..., each in the order of monomials()
};

/// The section router, field by field, so that a test can make any of them wrong.
struct Router {
    std::uint32_t n_groups = 0, n_panels = 0;
    std::vector<std::uint32_t> starts, members;
    std::vector<float> panels;  // of the groups, then of the members
};

struct Model {
    std::uint32_t task = 0, mode = approximate, label_kind = 1, n_labels = 2, first_index = 1, center_kind = 1;
    std::uint32_t degree = 2, first_remainder_degree = 9;
    double gamma = 0.5, input_scale = 1.0, intercept = 0.25, total_norm = 1.0, sum_moduli = 1.0, value_error = 0.0;
    double max_sv_norm = 1.5, max_sv_norm_origin = 2.5, tolerance = std::numeric_limits<double>::infinity();
    std::vector<float> center;
    std::vector<Expansion> expansions = std::vector<Expansion>(1);
    std::vector<std::uint32_t> varying;  // columns, or none where all of them vary
    Router router;
    Bytes labels;
    std::vector<double> check_rows;  // amplitude, value, tolerance

    // Certified and exact models.
    std::vector<double> dual_coef;
    std::vector<std::vector<double>> support_vectors;
    std::vector<double> exact_check_rows;

    std::uint32_t kernel = 0;

    std::size_t n_features() const { return center.size(); }
    std::vector<std::uint32_t> varying_columns() const {
        std::vector<std::uint32_t> columns = varying;
        for (std::uint32_t j = 0; varying.empty() && j < n_features(); ++j) columns.push_back(j);
        return columns;
    }
    bool is_expanded() const { return mode != exact; }
    std::size_t n_centers() const { return is_expanded() ? expansions.size() : 0; }
    const std::vector<float>& center_of(std::size_t c) const {
        return expansions.size() > 1 ? expansions[c].center : center;
    }
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

/// Storage order of the triangle, as the format says it: eight matrix rows at a time, first their own triangle
/// by columns, then their entries of every later column.
std::vector<float> packed(const std::vector<float>& triangle, std::size_t d);

/// The variables of every monomial of degree k in the variables first ... d - 1, in the storage order of that degree:
/// of degree 2 as in packed(), of a higher one for each first variable in turn those of a degree less from it on.
std::vector<std::vector<std::size_t>> monomials(std::size_t first, std::size_t d, int k);

/// CRC-32 of the format, with the four bytes of the checksum itself as zeros.
std::uint32_t checksum_of(const Bytes& bytes);

/// Makes file_bytes and checksum true again after a change, so that the change itself is what a reader meets.
inline void seal(Bytes& bytes) {
    put(bytes, 16, static_cast<std::uint64_t>(bytes.size()));
    put(bytes, 24, checksum_of(bytes));
}

/// The section support_vectors: all numbers of all vectors, as float64.
Bytes packed_vectors(const std::vector<std::vector<double>>& vectors);

struct Section {
    std::uint32_t identifier;
    Bytes content;
};

/// One number after the other for every center.
template <class Get>
Bytes for_all_centers(const Model& model, const Get& get_bytes) {
    Bytes bytes;
    for (const Expansion& expansion : model.expansions) {
        const Bytes more = get_bytes(expansion);
        bytes.insert(bytes.end(), more.begin(), more.end());
    }
    return bytes;
}

Bytes record_of(const Expansion& expansion);

Bytes bytes_of_router(const Router& router);

std::vector<Section> sections_of(const Model& model);

Bytes header_of(const Model& model, std::size_t n_sections);

/// Header, section table and sections, sealed.
Bytes laid_out(const Model& model, const std::vector<Section>& sections);
Bytes laid_out(Bytes header, const std::vector<Section>& sections);

inline Bytes written(const Model& model) {
    return laid_out(model, sections_of(model));
}

// --- the meaning of the bytes ---

/// Sums of the formula for one row about one center, in long double, and the same sums over moduli.
struct Terms {
    long double half_s = 0, inner = 0, moduli = 0;
    std::size_t center = 0;

    long double value(const Model& model) const {
        const long double scale = model.expansions[center].output_scale, intercept = model.intercept;
        return half_s > 87.33L ? intercept : intercept + scale * std::exp(-half_s) * inner;
    }
};

template <class Real>
Terms terms_of(const Model& model, const Real* row, std::size_t c = 0) {
    const std::vector<std::uint32_t> columns = model.varying_columns();
    const std::size_t d = columns.size();
    const Expansion& expansion = model.expansions[c];
    std::vector<long double> u(d);
    long double sq_norm = 0;
    for (std::size_t j = 0; j < d; ++j) {
        const long double z = row[columns[j]], from = model.center_of(c)[columns[j]], scale = model.input_scale;
        u[j] = (z - from) * scale;
        sq_norm += u[j] * u[j];
    }
    Terms terms;
    terms.center = c;
    const long double scale = model.input_scale;
    terms.half_s = model.gamma * sq_norm / (scale * scale);
    terms.inner = expansion.constant;
    terms.moduli = std::fabs(expansion.constant);
    for (std::size_t i = 0; i < d; ++i) {
        long double sum = expansion.linear[i], moduli = std::fabs(expansion.linear[i]);
        for (std::size_t j = i; j < d && model.degree >= 2; ++j) {
            const long double term = expansion.triangle[i * d + j] * u[j];
            sum += term;
            moduli += std::fabs(term);
        }
        terms.inner += u[i] * sum;
        terms.moduli += std::fabs(u[i]) * moduli;
    }
    std::size_t position = 0;
    for (int k = 3; k <= static_cast<int>(model.degree); ++k) {
        for (const std::vector<std::size_t>& variables : monomials(0, d, k)) {
            long double product = expansion.higher[position++];
            for (const std::size_t j : variables) product *= u[j];
            terms.inner += product;
            terms.moduli += std::fabs(product);
        }
    }
    return terms;
}

/// Synthetic row number k, as the format defines it.
std::vector<float> synthetic_row(const Model& model, const std::vector<float>& from, double amplitude, std::uint64_t k);

/// The exact decision value, in long double.
template <class Real>
long double exact_value(const Model& model, const Real* row) {
    long double sum = model.intercept;
    for (std::size_t i = 0; i < model.dual_coef.size(); ++i) {
        long double sq_distance = 0;
        for (std::size_t j = 0; j < model.n_features(); ++j) {
            const long double x = model.support_vectors[i][j], z = row[j];
            sq_distance += (x - z) * (x - z);
        }
        sum += model.dual_coef[i] * std::exp(-model.gamma * sq_distance);
    }
    return sum;
}

/// Check rows of the exact model, of about norm 1: roundings of float64, with room for cancellation in the distances.
void add_exact_check_rows(Model& model, std::size_t n_rows);

/// Check rows whose tolerance is one of float32: 2 d + 64 roundings of the sum of moduli, or d more for every degree
/// beyond 2.
void add_check_rows(Model& model, std::size_t n_rows);

}  // namespace artifact_writer
