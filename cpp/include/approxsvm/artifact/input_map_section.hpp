// Reads the section input_map in place (models/FORMAT.md, "input_map"): every MUST is checked before a pointer is
// handed out. predict/input_map.hpp does what it says.
#pragma once

#include "fault.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

namespace part {
enum : std::size_t { subtract, multiply, divide, add, low, high, relative_error, n_affine };
enum : std::size_t { center, matrix, bias, bias_error };
enum : std::size_t { offset };
}  // namespace part

// One stage, seen in place. Parts of an affine stage that change nothing are null.
struct MapStage {
    StageKind kind;
    std::size_t n_inputs, n_outputs;
    const double* parts[part::n_affine];
};

// The stage at p; returns where the next one is. The bytes have been validated.
inline const unsigned char* read_stage(const unsigned char* p, std::size_t n_inputs, MapStage& stage) {
    const StageHeader header = read_at<StageHeader>(p, 0);
    stage.kind = static_cast<StageKind>(header.kind);
    stage.n_inputs = n_inputs;
    stage.n_outputs = static_cast<std::size_t>(header.n_outputs);
    const double* numbers = reinterpret_cast<const double*>(p + sizeof(StageHeader));
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
        if (!(header.parts >> k & 1)) continue;
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

// The numbers of a stage whose size is right.
inline bool stage_is_valid(Check& check, const MapStage& stage) {
    const double* const* parts = stage.parts;
    const std::size_t n = stage.n_inputs, m = stage.n_outputs;
    if (stage.kind == StageKind::logarithm)
        return check.each(field::stage_offset, parts[part::offset], n, at_least(-largest_double));
    if (stage.kind == StageKind::projection) {
        return check.finite(field::stage_projection, parts[part::center], n + n * m + 2 * m) &&
               check.each(field::stage_bias_error, parts[part::bias_error], m, at_least(0.0));
    }
    for (std::uint32_t k = 0; k < part::n_affine; ++k) {
        const field::Id name = static_cast<field::Id>(field::stage_subtract + k);
        const bool is_limit = k == part::low || k == part::high;
        if (parts[k]) check.each(name, parts[k], n, is_limit ? Expected{Rule::not_nan, {}, {}} : finite_number);
    }
    if (parts[part::divide])
        check.each(field::stage_divide, parts[part::divide], n, Expected{Rule::not_equal, stored(0.0), {}});
    if (parts[part::relative_error])
        check.each(field::stage_relative_error, parts[part::relative_error], n, at_least(0.0));
    for (std::size_t j = 0; parts[part::low] && parts[part::high] && j < n; ++j) {
        check(field::stage_high, parts[part::high][j], at_least(parts[part::low][j]), j);
    }
    return check.status() == Status::ok;
}

// Checks stage number `index`, which begins at a byte of the section; `at` becomes where the next one is.
inline bool read_checked_stage(Check& check, const unsigned char* bytes, std::size_t n_bytes, std::size_t n_inputs,
                               std::uint64_t index, MapStage& stage, std::size_t& at) {
    if (!check(field::any_size, n_bytes, at_least(at + sizeof(StageHeader)))) return false;
    const StageHeader header = read_at<StageHeader>(bytes, at);
    if (!check(field::stage_kind, header.kind, up_to(StageKind::logarithm), index)) return false;
    const StageKind kind = static_cast<StageKind>(header.kind);
    const bool affine = kind == StageKind::affine;
    check(field::stage_parts, header.parts, affine ? from_to(1, (1 << part::n_affine) - 1) : equal_to(0), index);
    check(field::stage_n_outputs, header.n_outputs,
          kind == StageKind::projection ? from_to(0, max_n_features) : equal_to(n_inputs), index);
    if (check.status() != Status::ok) return false;
    const ClaimedSize n = n_inputs, m = header.n_outputs;  // at most 2^20 each
    ClaimedSize n_numbers = kind == StageKind::projection ? n + n * m + 2 * m : affine ? 0 : n;
    for (std::size_t k = 0; affine && k < part::n_affine; ++k) n_numbers += header.parts >> k & 1 ? n : 0;
    if (!check(field::any_size, n_bytes, at_least(at + sizeof(StageHeader) + 8 * n_numbers))) return false;
    at = static_cast<std::size_t>(read_stage(bytes + at, n_inputs, stage) - bytes);
    return stage_is_valid(check, stage);
}

// Describes the section's map, or says that it is broken. `bytes` is null where there is no map.
inline Status read_input_map(const unsigned char* bytes, std::size_t n_bytes, std::size_t n_raw_features,
                             std::size_t n_features, InputMapView& map, ArtifactFault* fault = nullptr) {
    map = InputMapView{};
    Check header(fault, section::none, Status::bad_header), check(fault, section::input_map, Status::bad_section);
    if (!bytes) {
        header(field::header_n_raw_features, n_raw_features, equal_to(n_features));
        return header.status();
    }
    if (!check(field::any_size, n_bytes, at_least(sizeof(InputMapHeader)))) return check.status();
    const InputMapHeader counts = read_at<InputMapHeader>(bytes, 0);
    const std::size_t n_columns = counts.n_columns;
    check(field::input_map_n_raw_features, counts.n_raw_features, equal_to(n_raw_features));
    check(field::input_map_n_columns, n_columns, from_to(0, max_n_features));
    check(field::input_map_by_column, counts.by_column, from_to(0, 1));  // which tables ask for
    if (check.status() != Status::ok) return check.status();
    const std::size_t columns_end = sizeof(InputMapHeader) + 4 * n_columns, stages_begin = (columns_end + 7) / 8 * 8;
    if (!check(field::any_size, n_bytes, at_least(stages_begin)) || !check.zeros(bytes, columns_end, stages_begin))
        return check.status();
    map.columns = reinterpret_cast<const std::uint32_t*>(bytes + sizeof(InputMapHeader));
    check.each(field::input_map_column, map.columns, n_columns, from_to(0, n_raw_features - 1));
    check(field::input_map_n_stages, counts.n_stages, from_to(0, n_bytes / sizeof(StageHeader)));
    map.n_columns = map.widest = n_columns;
    map.takes_all_columns = n_columns == n_raw_features;
    for (std::size_t k = 0; k < n_columns; ++k) map.takes_all_columns &= map.columns[k] == k;
    map.n_stages = counts.n_stages;
    map.stages = bytes + stages_begin;
    std::size_t at = stages_begin, n = n_columns;
    for (std::size_t k = 0; check.status() == Status::ok && k < map.n_stages; ++k) {
        MapStage stage;
        if (!read_checked_stage(check, bytes, n_bytes, n, k, stage, at)) break;
        n = stage.n_outputs;
        map.widest = n > map.widest ? n : map.widest;
        map.has_projection |= stage.kind == StageKind::projection;
    }
    check(field::any_size, n_bytes, equal_to(at));
    check(field::input_map_n_features, n, equal_to(n_features));
    return check.status();
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm
