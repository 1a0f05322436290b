#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

// Writes artifacts byte by byte from models/FORMAT.md, and evaluates them in extended precision from its formulas.
// Nothing of the library is used here, so that reader and writer cannot share a mistake.

namespace artifact_writer {

using Bytes = std::vector<unsigned char>;

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
    favourites,
    dual_coef,
    support_vectors,
    exact_check_rows,
    outputs,
    input_map,
    varying,
    polynomial,
    members
};

/// What belongs to one center.
struct Expansion {
    std::vector<float> center;  // of a model with many
    double constant = 0.5, output_scale = 1.0;
    std::vector<double> norms = std::vector<double>(9, 1.0);
    double remainder = 1.0, contraction = 1.0, coefficient_error = 1.0, max_sv_norm = 1.5;
    double direction_scale = 1.0, direction_trace = 1.0, direction_error = 1.0;
    std::vector<float> linear;
    std::vector<float> triangle;   // v x v by rows; only j >= i is used, off-diagonal entries already doubled
    std::vector<float> direction;  // like `triangle`, or empty
    std::vector<float> higher;     // degree 3, then 4, ..., each in the order of monomials()
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
    std::vector<std::string> feature_names;
    std::string plan;

    // Certified and exact models.
    std::vector<double> dual_coef;
    std::vector<std::vector<double>> support_vectors;
    std::uint32_t storage = 0, value_kind = 0;  // of the packed support vectors
    std::vector<double> exact_check_rows;

    // Of a polynomial kernel, whose center is the origin and not written: degree and gamma are its own.
    std::uint32_t kernel = 0;
    double coef0 = 0.0, coef_error = 0.0;
    std::vector<double> form;  // numbers of the section behind coef_error

    std::size_t n_features() const { return center.size(); }
    std::vector<std::uint32_t> varying_columns() const {
        std::vector<std::uint32_t> columns = varying;
        for (std::uint32_t j = 0; varying.empty() && j < n_features(); ++j) columns.push_back(j);
        return columns;
    }
    bool is_expanded() const { return kernel == 0 && mode != exact; }
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

inline Bytes text_list(const std::vector<std::string>& texts) {
    Bytes bytes;
    for (const std::string& text : texts) append(bytes, static_cast<std::uint32_t>(text.size()));
    for (const std::string& text : texts) bytes.insert(bytes.end(), text.begin(), text.end());
    return bytes;
}

/// Storage order of the triangle, as the format says it: eight matrix rows at a time, first their own triangle
/// by columns, then their entries of every later column.
inline std::vector<float> packed(const std::vector<float>& triangle, std::size_t d) {
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

/// The variables of every monomial of degree k in the variables first ... d - 1, in the storage order of that degree:
/// of degree 2 as in packed(), of a higher one for each first variable in turn those of a degree less from it on.
inline std::vector<std::vector<std::size_t>> monomials(std::size_t first, std::size_t d, int k) {
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

/// CRC-32 of the format, bit by bit, with the four bytes of the checksum itself as zeros.
inline std::uint32_t checksum_of(const Bytes& bytes) {
    std::uint32_t crc = ~0u;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        crc ^= i >= 24 && i < 28 ? 0u : bytes[i];
        for (int bit = 0; bit < 8; ++bit) crc = (crc & 1u) != 0 ? 0xEDB88320u ^ (crc >> 1) : crc >> 1;
    }
    return ~crc;
}

/// Makes file_bytes and checksum true again after a change, so that the change itself is what a reader meets.
inline void seal(Bytes& bytes) {
    put(bytes, 16, static_cast<std::uint64_t>(bytes.size()));
    put(bytes, 24, checksum_of(bytes));
}

/// The section support_vectors, field by field, so that a test can make any of them wrong.
struct Packing {
    std::uint32_t storage = 0, value_kind = 0, index_bytes = 0, n_dictionary = 0;
    std::uint64_t n_values = 0;
    std::vector<double> dictionary, values;      // codes are values too
    std::vector<std::uint64_t> counts, columns;  // of storage 1

    Bytes bytes() const {
        Bytes result;
        for (const std::uint32_t number : {storage, value_kind, index_bytes, n_dictionary}) append(result, number);
        append(result, n_values);
        append_padded(result, bytes_of(dictionary));
        append_padded(result, narrowed(counts, index_bytes));
        append_padded(result, narrowed(columns, index_bytes));
        if (n_dictionary == 1) return result;
        if (value_kind == 0) append_padded(result, bytes_of(values));
        if (value_kind == 1) append_padded(result, bytes_of(std::vector<float>(floats())));
        if (value_kind >= 2) append_padded(result, narrowed({values.begin(), values.end()}, value_kind == 2 ? 1 : 2));
        return result;
    }

  private:
    std::vector<float> floats() const {
        std::vector<float> result;
        for (const double value : values) result.push_back(static_cast<float>(value));
        return result;
    }
    static void append_padded(Bytes& bytes, const Bytes& array) {
        bytes.insert(bytes.end(), array.begin(), array.end());
        bytes.resize((bytes.size() + 7) / 8 * 8);
    }
    /// The lowest bytes of each number.
    static Bytes narrowed(const std::vector<std::uint64_t>& numbers, std::uint32_t width) {
        Bytes result;
        for (const std::uint64_t number : numbers) {
            for (std::uint32_t k = 0; k < width; ++k) result.push_back(static_cast<unsigned char>(number >> 8 * k));
        }
        return result;
    }
};

inline Packing pack(const std::vector<std::vector<double>>& vectors, std::size_t d, std::uint32_t storage,
                    std::uint32_t value_kind) {
    Packing packed;
    packed.storage = storage;
    packed.value_kind = value_kind;
    if (storage == 1) packed.index_bytes = d < 256 ? 1 : d < 65536 ? 2 : 4;
    for (const std::vector<double>& vector : vectors) {
        std::uint64_t count = 0;
        for (std::size_t j = 0; j < d; ++j) {
            if (storage == 1 && vector[j] == 0) continue;
            packed.values.push_back(vector[j]);
            if (storage == 1) packed.columns.push_back(j);
            ++count;
        }
        if (storage == 1) packed.counts.push_back(count);
    }
    packed.n_values = packed.values.size();
    if (value_kind < 2) return packed;
    packed.dictionary = packed.values;
    std::sort(packed.dictionary.begin(), packed.dictionary.end());
    packed.dictionary.erase(std::unique(packed.dictionary.begin(), packed.dictionary.end()), packed.dictionary.end());
    packed.n_dictionary = static_cast<std::uint32_t>(packed.dictionary.size());
    for (double& value : packed.values) {
        const auto found = std::lower_bound(packed.dictionary.begin(), packed.dictionary.end(), value);
        value = static_cast<double>(found - packed.dictionary.begin());
    }
    return packed;
}

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

inline Bytes record_of(const Expansion& expansion) {
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

inline Bytes bytes_of_router(const Router& router) {
    Bytes bytes;
    append(bytes, router.n_groups);
    append(bytes, router.n_panels);
    for (const std::uint32_t start : router.starts) append(bytes, start);
    for (const std::uint32_t member : router.members) append(bytes, member);
    bytes.resize((bytes.size() + 63) / 64 * 64);
    for (const float number : router.panels) append(bytes, number);
    return bytes;
}

inline std::vector<Section> sections_of(const Model& model) {
    const std::size_t d = model.n_features(), v = model.varying_columns().size();
    const bool expanded = model.is_expanded(), has_vectors = model.mode != approximate;
    std::vector<Section> sections;
    if (model.kernel == 0) sections.push_back({center, bytes_of(model.center)});
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
    if (expanded && !model.expansions[0].direction.empty()) {
        add(direction, [=](const Expansion& e) { return bytes_of(packed(e.direction, v)); });
    }
    if (many) sections.push_back({router, bytes_of_router(model.router)});
    if (!model.labels.empty()) sections.push_back({labels, model.labels});
    if (expanded) sections.push_back({check_rows, bytes_of(model.check_rows)});
    if (!model.feature_names.empty()) sections.push_back({feature_names, text_list(model.feature_names)});
    if (!model.plan.empty()) sections.push_back({plan, Bytes(model.plan.begin(), model.plan.end())});
    if (has_vectors) {
        sections.push_back({dual_coef, bytes_of(model.dual_coef)});
        sections.push_back({support_vectors, pack(model.support_vectors, d, model.storage, model.value_kind).bytes()});
    }
    if (has_vectors || model.kernel == 1) sections.push_back({exact_check_rows, bytes_of(model.exact_check_rows)});
    if (model.kernel == 1) {
        std::vector<double> numbers = {model.coef0, model.coef_error};
        numbers.insert(numbers.end(), model.form.begin(), model.form.end());
        sections.push_back({polynomial, bytes_of(numbers)});
    }
    if (!model.varying.empty()) sections.push_back({varying, bytes_of(model.varying)});
    return sections;
}

inline Bytes header_of(const Model& model, std::size_t n_sections) {
    const bool expanded = model.is_expanded();
    Bytes bytes = {0x89, 0x41, 0x53, 0x56, 0x4D, 0x0D, 0x0A, 0x1A};
    append(bytes, std::uint32_t{6});
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
    bytes.resize(176);                                 // label_dtype, reserved, source
    append(bytes, std::uint64_t{model.n_features()});  // n_raw_features
    append(bytes, model.kernel);
    bytes.resize(192);
    return bytes;
}

/// Header, section table and sections, sealed.
inline Bytes laid_out(const Model& model, const std::vector<Section>& sections) {
    Bytes bytes = header_of(model, sections.size());
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
inline std::vector<float> synthetic_row(const Model& model, const std::vector<float>& from, double amplitude,
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

/// The exact decision value, in long double.
template <class Real>
long double exact_value(const Model& model, const Real* row) {
    long double sum = model.intercept;
    for (std::size_t i = 0; i < model.dual_coef.size(); ++i) {
        long double sq_distance = 0, product = 0;
        for (std::size_t j = 0; j < model.n_features(); ++j) {
            const long double x = model.support_vectors[i][j], z = row[j];
            sq_distance += (x - z) * (x - z);
            product += x * z;
        }
        if (model.kernel == 1) {
            const long double base = model.gamma * product + model.coef0;
            sum += model.dual_coef[i] * std::pow(base, static_cast<int>(model.degree));
            continue;
        }
        sum += model.dual_coef[i] * std::exp(-model.gamma * sq_distance);
    }
    return sum;
}

/// Check rows of the exact model: roundings of float64, with room for cancellation in the distances.
inline void add_exact_check_rows(Model& model, std::size_t n_rows) {
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

/// Check rows whose tolerance is one of float32: 2 d + 64 roundings of the sum of moduli, or d more for every degree
/// beyond 2.
inline void add_check_rows(Model& model, std::size_t n_rows) {
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
