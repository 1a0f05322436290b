// How raw rows become rows of a model: columns are picked, then stages follow, operation after operation in float64 as
// the source has them, so that up to the first projection a row is the source's own, bit for bit (models/FORMAT.md,
// "input_map"). Beside each row goes a bound of its distance to the same function over the real numbers; the derivation
// is in approxsvm/input_map.py, which this follows line by line.
#pragma once

#include <cmath>
#include <cstring>

#include "model_view.hpp"
#include "simd.hpp"
#include "status.hpp"
#include "support_vectors.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

constexpr std::size_t map_header_bytes = 16, stage_header_bytes = 16, max_map_features = 1 << 20;

namespace part {
enum : std::size_t { subtract, multiply, divide, add, low, high, relative_error, n_affine };
enum : std::size_t { center, matrix, bias, bias_error, n_projection };
}  // namespace part

// One stage, seen in place. Parts of an affine stage that change nothing are null.
struct MapStage {
    bool is_projection;
    std::size_t n_inputs, n_outputs;
    const double* parts[part::n_affine];
};

// The stage at p; returns where the next one is. The bytes have been validated.
inline const unsigned char* read_stage(const unsigned char* p, std::size_t n_inputs, MapStage& stage) {
    const std::uint32_t present = read_at<std::uint32_t>(p, 4);
    stage.is_projection = read_at<std::uint32_t>(p, 0) == 1;
    stage.n_inputs = n_inputs;
    stage.n_outputs = static_cast<std::size_t>(read_at<std::uint64_t>(p, 8));
    const double* numbers = reinterpret_cast<const double*>(p + stage_header_bytes);
    for (const double*& numbers_of_part : stage.parts) numbers_of_part = nullptr;
    if (stage.is_projection) {
        stage.parts[part::center] = numbers;
        stage.parts[part::matrix] = stage.parts[part::center] + n_inputs;
        stage.parts[part::bias] = stage.parts[part::matrix] + n_inputs * stage.n_outputs;
        stage.parts[part::bias_error] = stage.parts[part::bias] + stage.n_outputs;
        return reinterpret_cast<const unsigned char*>(stage.parts[part::bias_error] + stage.n_outputs);
    }
    for (std::size_t k = 0; k < part::n_affine; ++k) {
        if (!(present >> k & 1)) continue;
        stage.parts[k] = numbers;
        numbers += n_inputs;
    }
    return reinterpret_cast<const unsigned char*>(numbers);
}

// --- validation

// No NaN, and no infinity unless limits are looked at.
inline bool all_numbers(const double* numbers, std::size_t n, bool may_be_infinite = false) {
    bool valid = true;
    for (std::size_t k = 0; k < n; ++k) {
        valid &= may_be_infinite ? numbers[k] == numbers[k] : std::fabs(numbers[k]) <= 0x1.fffffffffffffp1023;
    }
    return valid;
}

inline bool stage_is_valid(const MapStage& stage) {
    const double* const* parts = stage.parts;
    const std::size_t n = stage.n_inputs, m = stage.n_outputs;
    if (stage.is_projection) {
        for (std::size_t k = 0; k < m; ++k) {
            if (!(parts[part::bias_error][k] >= 0.0)) return false;
        }
        return all_numbers(parts[part::center], n + n * m + 2 * m);
    }
    for (std::size_t k = 0; k < part::n_affine; ++k) {
        if (parts[k] && !all_numbers(parts[k], n, k == part::low || k == part::high)) return false;
    }
    for (std::size_t j = 0; j < n; ++j) {
        if (parts[part::divide] && parts[part::divide][j] == 0.0) return false;
        if (parts[part::relative_error] && !(parts[part::relative_error][j] >= 0.0)) return false;
        if (parts[part::low] && parts[part::high] && parts[part::low][j] > parts[part::high][j]) return false;
    }
    return true;
}

// Checks a stage of so many bytes at most; `used` is what it takes.
inline bool read_checked_stage(const unsigned char* p, std::size_t n_bytes, std::size_t n_inputs, MapStage& stage,
                               std::size_t& used) {
    if (n_bytes < stage_header_bytes) return false;
    const std::uint32_t kind = read_at<std::uint32_t>(p, 0), present = read_at<std::uint32_t>(p, 4);
    const std::uint64_t n_outputs = read_at<std::uint64_t>(p, 8);
    const std::size_t left = (n_bytes - stage_header_bytes) / 8;  // numbers
    std::size_t n_numbers = 0;
    if (kind == 0) {
        if (n_outputs != n_inputs || present >> part::n_affine != 0) return false;
        for (std::size_t k = 0; k < part::n_affine; ++k) n_numbers += present >> k & 1 ? n_inputs : 0;
    } else {
        if (kind != 1 || present != 0 || n_outputs > max_map_features) return false;
        const std::size_t m = static_cast<std::size_t>(n_outputs);
        if (m != 0 && n_inputs > left / m) return false;
        n_numbers = n_inputs + n_inputs * m + 2 * m;
    }
    if (n_numbers > left) return false;
    used = stage_header_bytes + 8 * n_numbers;
    read_stage(p, n_inputs, stage);
    return stage_is_valid(stage);
}

// Describes the section's map, or says that it is broken. `bytes` is null where there is no map.
inline Status read_input_map(const unsigned char* bytes, std::size_t n_bytes, std::size_t n_raw_features,
                             std::size_t n_features, InputMapView& map) {
    map = InputMapView{};
    if (!bytes) return n_raw_features == n_features ? Status::ok : Status::bad_header;
    if (n_bytes < map_header_bytes || read_at<std::uint64_t>(bytes, 8) != n_raw_features) return Status::bad_section;
    const std::size_t n_columns = read_at<std::uint32_t>(bytes, 0), n_stages = read_at<std::uint32_t>(bytes, 4);
    if (n_columns > (n_bytes - map_header_bytes) / 4) return Status::bad_section;
    const std::size_t columns_end = map_header_bytes + 4 * n_columns, stages_begin = (columns_end + 7) / 8 * 8;
    if (stages_begin > n_bytes || n_stages > n_bytes / stage_header_bytes) return Status::bad_section;
    for (std::size_t k = columns_end; k < stages_begin; ++k) {
        if (bytes[k] != 0) return Status::bad_section;
    }
    map.columns = reinterpret_cast<const std::uint32_t*>(bytes + map_header_bytes);
    for (std::size_t k = 0; k < n_columns; ++k) {
        if (map.columns[k] >= n_raw_features) return Status::bad_section;
    }
    map.n_columns = map.widest = n_columns;
    map.n_stages = n_stages;
    map.stages = bytes + stages_begin;
    std::size_t at = stages_begin, n = n_columns;
    for (std::size_t k = 0; k < n_stages; ++k) {
        MapStage stage;
        std::size_t used = 0;
        if (!read_checked_stage(bytes + at, n_bytes - at, n, stage, used)) return Status::bad_section;
        at += used;
        n = stage.n_outputs;
        map.widest = n > map.widest ? n : map.widest;
        map.has_projection |= stage.is_projection;
    }
    return at == n_bytes && n == n_features ? Status::ok : Status::bad_section;
}

// --- mapping

// Numbers of memory for map_row.
inline std::size_t map_doubles(const InputMapView& map) {
    return 4 * map.widest;
}

// Each operation in a loop of its own: whatever the compiler contracts, it is not two of these.
inline void run_affine(const MapStage& stage, double* x, double* error) {
    constexpr double u = 0x1p-53, tiny = 0x1p-1070;
    const std::size_t n = stage.n_inputs;
    const double* const* parts = stage.parts;
    if (const double* subtract = parts[part::subtract]) {
        for (std::size_t j = 0; j < n; ++j) x[j] -= subtract[j];
        for (std::size_t j = 0; j < n; ++j) error[j] += u * std::fabs(x[j]);
    }
    if (const double* multiply = parts[part::multiply]) {
        for (std::size_t j = 0; j < n; ++j) x[j] *= multiply[j];
        for (std::size_t j = 0; j < n; ++j) {
            error[j] = error[j] * std::fabs(multiply[j]) + (u * std::fabs(x[j]) + tiny);
        }
    }
    if (const double* divide = parts[part::divide]) {
        for (std::size_t j = 0; j < n; ++j) x[j] /= divide[j];
        for (std::size_t j = 0; j < n; ++j) {
            error[j] = error[j] / std::fabs(divide[j]) + (u * std::fabs(x[j]) + tiny);
        }
    }
    if (const double* relative = parts[part::relative_error]) {
        for (std::size_t j = 0; j < n; ++j) error[j] += relative[j] * std::fabs(x[j]);
    }
    if (const double* add = parts[part::add]) {
        for (std::size_t j = 0; j < n; ++j) x[j] += add[j];
        for (std::size_t j = 0; j < n; ++j) error[j] += u * std::fabs(x[j]);
    }
    constexpr double up = 1.0 + 0x1p-30;
    for (std::size_t j = 0; j < n; ++j) error[j] *= up;
    const double *low = parts[part::low], *high = parts[part::high];
    for (std::size_t j = 0; low && j < n; ++j) {
        if (x[j] + error[j] < low[j]) error[j] = 0.0;  // below the limit, exactly or not
        if (x[j] < low[j]) x[j] = low[j];
    }
    for (std::size_t j = 0; high && j < n; ++j) {
        if (x[j] - error[j] > high[j]) error[j] = 0.0;
        if (x[j] > high[j]) x[j] = high[j];
    }
}

// y = (x - center) matrix + bias, its errors behind it.
inline void run_projection(const MapStage& stage, const double* x, const double* error, double* y, double* y_error) {
    constexpr double u = 0x1p-53;
    const std::size_t n = stage.n_inputs, m = stage.n_outputs;
    const double *center = stage.parts[part::center], *matrix = stage.parts[part::matrix],
                 *bias = stage.parts[part::bias], *bias_error = stage.parts[part::bias_error];
    const double path = 1.01 * (static_cast<double>(n) + 3.0) * u;
    for (std::size_t k = 0; k < m; ++k) y[k] = y_error[k] = 0.0;
    for (std::size_t j = 0; j < n; ++j) {
        const double from_center = x[j] - center[j], grown = error[j] + path * std::fabs(from_center);
        const double* row = matrix + j * m;
        for (std::size_t k = 0; k < m; ++k) y[k] += from_center * row[k];
        for (std::size_t k = 0; k < m; ++k) y_error[k] += grown * std::fabs(row[k]);
    }
    for (std::size_t k = 0; k < m; ++k) {
        y[k] += bias[k];
        y_error[k] += bias_error[k] + 2.0 * u * (std::fabs(bias[k]) + std::fabs(y[k])) + 0x1p-1070;
        y_error[k] *= 1.0 + 0x1p-30;
    }
}

// One mapped row, and how far it is from what is meant.
struct MappedRow {
    const double* values;  // (n_features,), in the memory lent
    double error;          // Euclidean distance; infinite where it is unknown
    bool is_finite;        // or else scaling has gone beyond float64
};

// raw(column) gives a raw number; `memory` has room for map_doubles() numbers.
template <class Raw>
inline MappedRow map_row(const InputMapView& map, const Raw& raw, double* memory) {
    double *x = memory, *error = x + map.widest, *y = error + map.widest, *y_error = y + map.widest;
    for (std::size_t k = 0; k < map.n_columns; ++k) x[k] = static_cast<double>(raw(map.columns[k]));
    for (std::size_t k = 0; k < map.n_columns; ++k) error[k] = 0.0;
    const unsigned char* next = map.stages;
    std::size_t n = map.n_columns;
    for (std::size_t k = 0; k < map.n_stages; ++k) {
        MapStage stage;
        next = read_stage(next, n, stage);
        n = stage.n_outputs;
        if (!stage.is_projection) {
            run_affine(stage, x, error);
            continue;
        }
        run_projection(stage, x, error, y, y_error);
        double *const was_x = x, *const was_error = error;
        x = y, error = y_error, y = was_x, y_error = was_error;
    }
    double sq_error = 0.0;
    for (std::size_t j = 0; j < n; ++j) sq_error += error[j] * error[j];
    // 2^-500: squares that underflow.
    const double distance = map.n_stages > 0 ? std::sqrt(sq_error) * (1.0 + 0x1p-29) + 0x1p-500 : 0.0;
    return {x, distance == distance ? distance : HUGE_VAL, all_numbers(x, n)};
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm
