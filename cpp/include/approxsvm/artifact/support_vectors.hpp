// Support vectors as stored in the artifact (models/FORMAT.md, "support_vectors"): in compact number types, dense or
// compressed. The reader returns their exact values, one vector at a time.
#ifndef APPROXSVM_ARTIFACT_SUPPORT_VECTORS_HPP
#define APPROXSVM_ARTIFACT_SUPPORT_VECTORS_HPP

#include "fault.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Reads an unsigned integer of 1, 2 or 4 bytes.
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

// Returns the section's stored value i.
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

// Returns coordinate j of the reference row, relative to which compressed support vectors are stored.
APPROXSVM_INLINE double reference_value(const PackedVectors& packed, std::size_t j) {
    return packed.reference ? read_at<double>(packed.reference, 8 * j) : 0.0;
}

// Reads the support vectors in order.
class SupportVectorReader {
  public:
    explicit SupportVectorReader(const ModelView& model)
        : packed_(model.packed), n_features_(model.n_features), next_vector_(0), next_value_(0) {}

    // Writes the next support vector as n_features doubles.
    void next(double* vector) {
        if (!packed_.compressed) {
            for (std::size_t j = 0; j < n_features_; ++j) vector[j] = packed_value(packed_, next_value_++);
            return;
        }
        for (std::size_t j = 0; j < n_features_; ++j) vector[j] = reference_value(packed_, j);
        next_stored([&](std::size_t j, double value) { vector[j] = value; });
    }

    // Calls visit(feature, value) for each stored value of the next compressed support vector. The stored features are
    // all those that may differ from the reference, in ascending order.
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

// Splits the section into its arrays and checks all conditions on which next() relies.
class PackedVectorsParser {
  public:
    PackedVectorsParser(const unsigned char* bytes, std::size_t n_bytes, ArtifactFault* fault)
        : bytes_(bytes), n_bytes_(n_bytes), check_(fault, section::support_vectors, Status::bad_support_vectors) {}

    APPROXSVM_COLD Status parse(std::size_t n_sv, std::size_t n_features, PackedVectors& packed) {
        if (read_header(n_sv, n_features, packed) && take_arrays(n_sv, n_features, packed)) {
            numbers_are_valid(n_features, packed);
            if (packed.compressed) columns_are_valid(packed, n_sv, n_features);
        }
        return check_.status();
    }

  private:
    bool read_header(std::size_t n_sv, std::size_t n_features, PackedVectors& packed) {
        if (!check_(field::any_size, n_bytes_, at_least(sizeof(PackedHeader)))) return false;
        const PackedHeader header = read_at<PackedHeader>(bytes_, 0);
        const bool codes = header.value_kind >= number_of(ValueKind::codes8), dense = header.storage == 0;
        check_(field::support_vectors_storage, header.storage, up_to(Storage::relative));
        check_(field::support_vectors_value_kind, header.value_kind, up_to(ValueKind::codes16));
        check_(field::support_vectors_n_dictionary, header.n_dictionary,
               codes ? from_to(1, max_dictionary) : equal_to(0));
        check_(field::support_vectors_index_bytes, header.index_bytes,
               equal_to(dense                ? 0
                        : n_features < 256   ? 1
                        : n_features < 65536 ? 2
                                             : 4));
        if (dense) check_(field::support_vectors_n_values, header.n_values, equal_to(std::uint64_t{n_sv} * n_features));
        packed.compressed = !dense;
        packed.value_kind = header.value_kind;
        packed.index_bytes = header.index_bytes;
        packed.n_dictionary = header.n_dictionary;
        packed.n_values = static_cast<std::size_t>(header.n_values);
        is_relative_ = header.storage == number_of(Storage::relative);
        n_values_ = header.n_values;
        return check_.status() == Status::ok;
    }

    bool take_arrays(std::size_t n_sv, std::size_t n_features, PackedVectors& packed) {
        constexpr std::size_t widths[] = {8, 4, 1, 2};
        const std::size_t width = packed.n_dictionary == 1 ? 0 : widths[packed.value_kind];
        return take(packed.n_dictionary, 8, packed.dictionary) &&
               (!is_relative_ || take(n_features, 8, packed.reference)) &&
               (!packed.compressed || (take(n_sv, packed.index_bytes, packed.counts) &&
                                       take(n_values_, packed.index_bytes, packed.columns))) &&
               take(n_values_, width, packed.values) && check_(field::any_size, n_bytes_, equal_to(offset_));
    }

    // Reads the next array, padded with zero bytes to a multiple of eight.
    bool take(std::uint64_t count, std::size_t width, const unsigned char*& array) {
        // With a larger count, the size in bytes might exceed 64 bits.
        if (width != 0 && count > n_bytes_) return check_(field::support_vectors_n_values, count, from_to(0, n_bytes_));
        array = bytes_ + offset_;
        const std::uint64_t end = offset_ + count * width, padded = (end + 7) / 8 * 8;
        if (!check_(field::any_size, n_bytes_, at_least(padded))) return false;
        offset_ = static_cast<std::size_t>(padded);
        return check_.zeros(bytes_, static_cast<std::size_t>(end), offset_);
    }

    void numbers_are_valid(std::size_t n_features, const PackedVectors& packed) {
        const auto finite = [&](field::Id name, const unsigned char* numbers, std::size_t n) {
            check_.finite(name, reinterpret_cast<const double*>(numbers), n);
        };
        finite(field::support_vectors_dictionary, packed.dictionary, packed.n_dictionary);
        if (is_relative_) finite(field::support_vectors_reference, packed.reference, n_features);
        if (packed.value_kind == number_of(ValueKind::float64))
            finite(field::support_vectors_value, packed.values, packed.n_values);
        if (packed.value_kind == number_of(ValueKind::float32))
            check_.finite(field::support_vectors_value, reinterpret_cast<const float*>(packed.values), packed.n_values);
        if (packed.n_dictionary < 2) return;
        const std::size_t width = packed.value_kind == number_of(ValueKind::codes8) ? 1 : 2;
        for (std::size_t i = 0; i < packed.n_values && check_.status() == Status::ok; ++i) {
            const std::size_t code = read_unsigned(packed.values, width, i);
            if (code >= packed.n_dictionary)
                check_(field::support_vectors_code, code, from_to(0, packed.n_dictionary - 1), i);
        }
    }

    void columns_are_valid(const PackedVectors& packed, std::size_t n_sv, std::size_t n_features) {
        std::uint64_t position = 0;
        for (std::size_t i = 0; i < n_sv && check_.status() == Status::ok; ++i) {
            const std::uint64_t end = position + read_unsigned(packed.counts, packed.index_bytes, i);
            if (!check_(field::support_vectors_count, end, from_to(0, n_values_), i)) return;
            for (std::size_t least = 0; position < end; ++position) {
                const std::size_t k = static_cast<std::size_t>(position),
                                  column = read_unsigned(packed.columns, packed.index_bytes, k);
                if (column < least || column >= n_features) {
                    check_.refuse(field::support_vectors_column, column, from_to(least, n_features - 1), k);
                    return;
                }
                least = column + 1;
            }
        }
        check_(field::any_sum, position, equal_to(n_values_));
    }

    const unsigned char* bytes_;
    std::size_t n_bytes_, offset_ = sizeof(PackedHeader);
    std::uint64_t n_values_ = 0;
    bool is_relative_ = false;
    Check check_;
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif
