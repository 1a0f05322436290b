// Support vectors as the artifact stores them (models/FORMAT.md, "support_vectors"): narrow, dense or compressed, and
// read back exactly, one after the other.
#pragma once

#include "../model_view.hpp"
#include "../simd/simd.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

constexpr std::size_t packed_header_bytes = 24;

template <class T>
inline T read_at(const unsigned char* bytes, std::size_t offset) {
    T value;
    std::memcpy(&value, bytes + offset, sizeof value);
    return value;
}

// An unsigned number of 1, 2 or 4 bytes.
APPROXSVM_INLINE std::size_t read_unsigned(const unsigned char* bytes, std::size_t width, std::size_t i) {
    switch (width) {
        case 1:
            return bytes[i];
        case 2:
            return read_at<std::uint16_t>(bytes, 2 * i);
        default:
            return read_at<std::uint32_t>(bytes, 4 * i);
    }
}

// Value number i of the section.
APPROXSVM_INLINE double packed_value(const PackedVectors& packed, std::size_t i) {
    switch (packed.value_kind) {
        case 0:
            return read_at<double>(packed.values, 8 * i);
        case 1:
            return static_cast<double>(read_at<float>(packed.values, 4 * i));
        default: {
            const std::size_t width = packed.value_kind == 2 ? 1 : 2;
            const std::size_t code = packed.n_dictionary == 1 ? 0 : read_unsigned(packed.values, width, i);
            return read_at<double>(packed.dictionary, 8 * code);
        }
    }
}

// Number j of the row that compressed support vectors are stored relative to.
APPROXSVM_INLINE double reference_value(const PackedVectors& packed, std::size_t j) {
    return packed.reference ? read_at<double>(packed.reference, 8 * j) : 0.0;
}

// Walks over the support vectors in order.
class SupportVectorReader {
  public:
    explicit SupportVectorReader(const ModelView& model)
        : packed_(model.packed), n_features_(model.n_features), next_vector_(0), next_value_(0) {}

    // The next support vector as n_features float64 numbers.
    void next(double* vector) {
        if (!packed_.compressed) {
            for (std::size_t j = 0; j < n_features_; ++j) vector[j] = packed_value(packed_, next_value_++);
            return;
        }
        for (std::size_t j = 0; j < n_features_; ++j) vector[j] = reference_value(packed_, j);
        next_stored([&](std::size_t j, double value) { vector[j] = value; });
    }

    // Calls visit(feature, value) for what is stored of the next of some compressed support vectors: all that may
    // differ from the reference, in ascending order.
    template <class Visit>
    void next_stored(const Visit& visit) {
        for (std::size_t left = read_unsigned(packed_.counts, packed_.index_bytes, next_vector_++); left > 0; --left) {
            visit(read_unsigned(packed_.columns, packed_.index_bytes, next_value_), packed_value(packed_, next_value_));
            ++next_value_;
        }
    }

  private:
    const PackedVectors packed_;
    const std::size_t n_features_;
    std::size_t next_vector_;
    std::size_t next_value_;
};

// Takes the arrays of the section apart and checks everything that `next` relies on.
class PackedVectorsParser {
  public:
    PackedVectorsParser(const unsigned char* bytes, std::size_t n_bytes)
        : bytes_(bytes), n_bytes_(n_bytes), offset_(0) {}

    bool parse(std::size_t n_sv, std::size_t n_features, PackedVectors& packed) {
        if (n_bytes_ < packed_header_bytes) return false;
        const std::uint32_t storage = read_at<std::uint32_t>(bytes_, 0);
        packed.value_kind = read_at<std::uint32_t>(bytes_, 4);
        packed.index_bytes = read_at<std::uint32_t>(bytes_, 8);
        packed.n_dictionary = read_at<std::uint32_t>(bytes_, 12);
        const std::uint64_t n_values = read_at<std::uint64_t>(bytes_, 16);
        packed.compressed = storage != 0;
        packed.n_values = static_cast<std::size_t>(n_values);
        const bool codes = packed.value_kind >= 2;
        if (storage > 2 || packed.value_kind > 3 || codes == (packed.n_dictionary == 0) || packed.n_dictionary > 65536)
            return false;
        const std::uint32_t index_bytes = n_features < 256 ? 1 : n_features < 65536 ? 2 : 4;
        if (packed.index_bytes != (packed.compressed ? index_bytes : 0)) return false;
        if (!packed.compressed && n_values != static_cast<std::uint64_t>(n_sv) * n_features) return false;
        offset_ = packed_header_bytes;
        if (!take(packed.n_dictionary, 8, packed.dictionary)) return false;
        if (storage == 2 && (!take(n_features, 8, packed.reference) || !is_finite_array(packed.reference, n_features)))
            return false;
        if (packed.compressed &&
            (!take(n_sv, index_bytes, packed.counts) || !take(n_values, index_bytes, packed.columns)))
            return false;
        constexpr std::size_t widths[] = {8, 4, 1, 2};
        const std::size_t width = packed.n_dictionary == 1 ? 0 : widths[packed.value_kind];
        if (!take(n_values, width, packed.values) || offset_ != n_bytes_) return false;
        return numbers_are_valid(packed, static_cast<std::size_t>(n_values)) &&
               (!packed.compressed || columns_are_valid(packed, n_sv, n_features, n_values));
    }

  private:
    // The next array, padded with zero bytes to a multiple of eight.
    bool take(std::uint64_t count, std::size_t width, const unsigned char*& array) {
        if (width != 0 && count > (n_bytes_ - offset_) / width) return false;
        array = bytes_ + offset_;
        const std::size_t end = offset_ + static_cast<std::size_t>(count) * width;
        const std::size_t padded = (end + 7) / 8 * 8;
        if (padded > n_bytes_) return false;
        for (std::size_t i = end; i < padded; ++i) {
            if (bytes_[i] != 0) return false;
        }
        offset_ = padded;
        return true;
    }

    static bool is_finite_array(const unsigned char* numbers, std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) {
            if (!is_finite(read_at<double>(numbers, 8 * i))) return false;
        }
        return true;
    }

    static bool numbers_are_valid(const PackedVectors& packed, std::size_t n_values) {
        if (packed.value_kind < 2) {
            for (std::size_t i = 0; i < n_values; ++i) {
                if (!is_finite(packed_value(packed, i))) return false;
            }
            return true;
        }
        if (!is_finite_array(packed.dictionary, packed.n_dictionary)) return false;
        if (packed.n_dictionary == 1) return true;
        for (std::size_t i = 0; i < n_values; ++i) {
            if (read_unsigned(packed.values, packed.value_kind == 2 ? 1 : 2, i) >= packed.n_dictionary) return false;
        }
        return true;
    }

    static bool columns_are_valid(const PackedVectors& packed, std::size_t n_sv, std::size_t n_features,
                                  std::uint64_t n_values) {
        std::uint64_t position = 0;
        for (std::size_t i = 0; i < n_sv; ++i) {
            const std::uint64_t end = position + read_unsigned(packed.counts, packed.index_bytes, i);
            if (end > n_values) return false;
            for (std::size_t least = 0; position < end; ++position) {
                const std::size_t column =
                    read_unsigned(packed.columns, packed.index_bytes, static_cast<std::size_t>(position));
                if (column < least || column >= n_features) return false;
                least = column + 1;
            }
        }
        return position == n_values;
    }

    const unsigned char* bytes_;
    std::size_t n_bytes_;
    std::size_t offset_;
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm
