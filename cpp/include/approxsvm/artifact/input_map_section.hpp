// Reads the section input_map in place (models/FORMAT.md, "input_map"): every MUST is checked before a pointer is
// handed out. predict/input_map.hpp does what it says.
#pragma once

#include <cmath>

#include "../model_view.hpp"
#include "../simd/block.hpp"
#include "../simd/simd.hpp"
#include "../status.hpp"
#include "support_vectors.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

constexpr std::size_t map_header_bytes = 16, stage_header_bytes = 16, max_map_features = 1 << 20;

namespace part {
enum : std::size_t { subtract, multiply, divide, add, low, high, relative_error, n_affine };
enum : std::size_t { center, matrix, bias, bias_error };
enum : std::size_t { offset };
}  // namespace part

enum class StageKind : std::uint32_t { affine = 0, projection = 1, logarithm = 2 };

// One stage, seen in place. Parts of an affine stage that change nothing are null.
struct MapStage {
    StageKind kind;
    std::size_t n_inputs, n_outputs;
    const double* parts[part::n_affine];
};

// The stage at p; returns where the next one is. The bytes have been validated.
inline const unsigned char* read_stage(const unsigned char* p, std::size_t n_inputs, MapStage& stage) {
    const std::uint32_t present = read_at<std::uint32_t>(p, 4);
    stage.kind = static_cast<StageKind>(read_at<std::uint32_t>(p, 0));
    stage.n_inputs = n_inputs;
    stage.n_outputs = static_cast<std::size_t>(read_at<std::uint64_t>(p, 8));
    const double* numbers = reinterpret_cast<const double*>(p + stage_header_bytes);
    for (const double*& numbers_of_part : stage.parts) numbers_of_part = nullptr;
    if (stage.kind == StageKind::projection) {
        stage.parts[part::center] = numbers;
        stage.parts[part::matrix] = stage.parts[part::center] + n_inputs;
        stage.parts[part::bias] = stage.parts[part::matrix] + n_inputs * stage.n_outputs;
        stage.parts[part::bias_error] = stage.parts[part::bias] + stage.n_outputs;
        return reinterpret_cast<const unsigned char*>(stage.parts[part::bias_error] + stage.n_outputs);
    }
    if (stage.kind == StageKind::logarithm) {
        stage.parts[part::offset] = numbers;
        return reinterpret_cast<const unsigned char*>(numbers + n_inputs);
    }
    for (std::size_t k = 0; k < part::n_affine; ++k) {
        if (!(present >> k & 1)) continue;
        stage.parts[k] = numbers;
        numbers += n_inputs;
    }
    return reinterpret_cast<const unsigned char*>(numbers);
}

// Calls use(stage) for all stages of a validated map, in order.
template <class Use>
inline void for_stages(const InputMapView& map, const Use& use) {
    std::size_t n = map.n_columns;
    const unsigned char* next = map.stages;
    for (std::size_t k = 0; k < map.n_stages; ++k) {
        MapStage stage;
        next = read_stage(next, n, stage);
        n = stage.n_outputs;
        use(stage);
    }
}

// No NaN, and no infinity unless limits are looked at.
inline bool all_numbers(const double* numbers, std::size_t n, bool may_be_infinite) {
    if (!may_be_infinite) return all_finite(numbers, 1, n);
    bool valid = true;
    for (std::size_t k = 0; k < n; ++k) valid &= numbers[k] == numbers[k];
    return valid;
}

inline bool stage_is_valid(const MapStage& stage) {
    const double* const* parts = stage.parts;
    const std::size_t n = stage.n_inputs, m = stage.n_outputs;
    if (stage.kind == StageKind::logarithm) {
        bool valid = true;
        for (std::size_t j = 0; j < n; ++j) valid &= parts[part::offset][j] >= -largest_double;  // nor NaN
        return valid;
    }
    if (stage.kind == StageKind::projection) {
        for (std::size_t k = 0; k < m; ++k) {
            if (!(parts[part::bias_error][k] >= 0.0)) return false;
        }
        return all_finite(parts[part::center], 1, n + n * m + 2 * m);
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
    switch (kind) {
        case static_cast<std::uint32_t>(StageKind::affine):
            if (n_outputs != n_inputs || present == 0 || present >> part::n_affine != 0) return false;
            for (std::size_t k = 0; k < part::n_affine; ++k) n_numbers += present >> k & 1 ? n_inputs : 0;
            break;
        case static_cast<std::uint32_t>(StageKind::projection): {
            if (present != 0 || n_outputs > max_map_features) return false;
            const std::size_t m = static_cast<std::size_t>(n_outputs);
            if (m != 0 && n_inputs > left / m) return false;
            n_numbers = n_inputs + n_inputs * m + 2 * m;
            break;
        }
        case static_cast<std::uint32_t>(StageKind::logarithm):
            if (present != 0 || n_outputs != n_inputs) return false;
            n_numbers = n_inputs;
            break;
        default:
            return false;
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
    if (n_bytes < map_header_bytes || read_at<std::uint32_t>(bytes, 8) != n_raw_features) return Status::bad_section;
    if (read_at<std::uint32_t>(bytes, 12) > 1) return Status::bad_section;  // by_column, which tables ask for
    const std::size_t n_columns = read_at<std::uint32_t>(bytes, 0), n_stages = read_at<std::uint32_t>(bytes, 4);
    if (n_columns > (n_bytes - map_header_bytes) / 4 || n_columns > max_map_features) return Status::bad_section;
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
    map.takes_all_columns = n_columns == n_raw_features;
    for (std::size_t k = 0; k < n_columns; ++k) map.takes_all_columns &= map.columns[k] == k;
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
        map.has_projection |= stage.kind == StageKind::projection;
    }
    return at == n_bytes && n == n_features ? Status::ok : Status::bad_section;
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm
