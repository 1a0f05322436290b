// Reads the section input_map in place (models/FORMAT.md, "input_map"). Every MUST is checked before a pointer is
// returned. predict/input_map.hpp evaluates the map.
#pragma once

#include "stages/stages.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// The stage at p; returns the start of the next one. The bytes have been validated.
template <Parts parts = all_parts>
inline const unsigned char* read_stage(const unsigned char* p, std::size_t n_inputs, MapStage& stage) {
    const StageHeader header = read_at<StageHeader>(p, 0);
    stage = {static_cast<StageKind>(header.kind),        header.parts, n_inputs,
             static_cast<std::size_t>(header.n_outputs), {},           {}};
    StageArrays arrays(p + sizeof(StageHeader));
    StagesOf<parts>::with(stage.kind, true, [&](auto kind) { return kind.find_parts(stage, arrays), true; });
    return arrays.end();
}

// Calls use(stage) for all stages of a validated map, in order.
template <Parts parts = all_parts, class Use>
inline void for_stages(const InputMapView& map, const Use& use) {
    std::size_t n = map.n_columns;
    const unsigned char* next = map.stages;
    for (std::size_t k = 0; k < map.n_stages; ++k) {
        MapStage stage;
        next = read_stage<parts>(next, n, stage);
        n = stage.n_outputs;
        use(stage);
    }
}

// Checks stage number `index`, which begins at a byte of the section; `at` becomes the start of the next one. Also
// false for a stage that the parts leave out.
template <Parts parts = all_parts>
APPROXSVM_COLD inline bool read_checked_stage(Check& check, const unsigned char* bytes, std::size_t n_bytes,
                                              std::size_t n_inputs, std::uint64_t index, MapStage& stage,
                                              std::size_t& at) {
    if (!check(field::any_size, n_bytes, at_least(at + sizeof(StageHeader)))) return false;
    const StageHeader header = read_at<StageHeader>(bytes, at);
    if (!check(field::stage_kind, header.kind, from_to(0u, AllStages::last), index)) return false;
    return StagesOf<parts>::with(static_cast<StageKind>(header.kind), false, [&](auto kind) {
        if (!kind.header_is_valid(check, header, n_inputs, index)) return false;
        const ClaimedSize n_words = kind.n_words(header, n_inputs);
        if (!check(field::any_size, n_bytes, at_least(at + sizeof(StageHeader) + 8 * n_words))) return false;
        at = static_cast<std::size_t>(read_stage<parts>(bytes + at, n_inputs, stage) - bytes);
        return kind.is_valid(check, stage);
    });
}

// Whether all stages present in a section are affine.
APPROXSVM_COLD inline bool only_scales(const unsigned char* bytes, std::size_t n_bytes) {
    if (n_bytes < sizeof(InputMapHeader)) return true;
    const InputMapHeader counts = read_at<InputMapHeader>(bytes, 0);
    ClaimedSize at = (sizeof(InputMapHeader) + 4 * ClaimedSize{counts.n_columns} + 7) / 8 * 8, n = counts.n_columns;
    for (std::uint64_t k = 0; k < counts.n_stages && at <= n_bytes && n_bytes - at >= sizeof(StageHeader); ++k) {
        const StageHeader header = read_at<StageHeader>(bytes, static_cast<std::size_t>(at));
        if (header.kind != number_of(StageKind::affine)) return false;
        if (header.n_outputs > max_n_features) return true;
        at += sizeof(StageHeader) + 8 * AffineStage::n_words(header, n);
        n = header.n_outputs;
    }
    return true;
}

// Whether the map turns NaN in a used column into a number.
template <Parts parts = all_parts>
inline bool takes_nan(const InputMapView& map, std::size_t column) {
    std::size_t n = map.n_columns, j = column;
    const unsigned char* next = map.stages;
    for (std::size_t k = 0; k < map.n_stages && j < nan_replaced; ++k) {
        MapStage stage;
        next = read_stage<parts>(next, n, stage);
        n = stage.n_outputs;
        j = StagesOf<parts>::with(stage.kind, j,
                                  [&](auto kind) { return kind.by_feature ? j : kind.follow_nan(stage, j); });
    }
    return j == nan_replaced;
}

// The raw column that input j of a stage comes from, or j if it depends on several.
template <Parts parts = all_parts>
inline std::size_t raw_column(const InputMapView& map, std::size_t stage_number, std::size_t j) {
    for (std::size_t wanted = stage_number; wanted-- > 0;) {
        std::size_t n = map.n_columns;
        const unsigned char* next = map.stages;
        MapStage stage;
        for (std::size_t k = 0; k <= wanted; ++k, n = stage.n_outputs) next = read_stage<parts>(next, n, stage);
        const std::size_t origin = StagesOf<parts>::with(
            stage.kind, j, [&](auto kind) { return kind.by_feature ? j : kind.origin(stage, j); });
        if (origin == several) return j;
        j = origin;
    }
    return map.columns[j];
}

// Describes the section's map, or reports that it is broken. `bytes` is null if there is no map.
template <Parts parts = all_parts>
APPROXSVM_COLD inline Status read_input_map(const unsigned char* bytes, std::size_t n_bytes, std::size_t n_raw_features,
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
    check(field::input_map_by_column, counts.by_column, from_to(0, 1));  // tables use it
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
    map.scales_alone = true;
    std::size_t at = stages_begin, n = n_columns, n_read = 0;
    for (; check.status() == Status::ok && n_read < map.n_stages; ++n_read) {
        MapStage stage;
        if (!read_checked_stage<parts>(check, bytes, n_bytes, n, n_read, stage, at)) break;
        n = stage.n_outputs;
        if (stage.kind != StageKind::affine) map.scales_alone = false;
        map.widest = n > map.widest ? n : map.widest;
        map.has_inverse_normal |= stage.kind == StageKind::inverse_normal;
        map.has_projection |= StagesOf<parts>::with(stage.kind, false, [](auto kind) { return kind.sums; });
    }
    if (check.status() == Status::ok && n_read < map.n_stages) return Status::left_out;
    check(field::input_map_n_features, n, equal_to(n_features));
    if (check.status() != Status::ok) return check.status();
    map.checked = reinterpret_cast<const CheckedColumn*>(bytes + at);
    map.n_checked = (n_bytes - at) / sizeof(CheckedColumn);
    check(field::any_size, n_bytes, equal_to(at + map.n_checked * sizeof(CheckedColumn)));
    for (std::size_t k = 0; check.status() == Status::ok && k < map.n_checked; ++k) {
        const std::size_t least = k > 0 ? std::size_t{map.checked[k - 1].column} + 1 : 0;
        check(field::checked_column_column, std::size_t{map.checked[k].column}, from_to(least, n_raw_features - 1), k);
        check(field::checked_column_takes_nan, map.checked[k].takes_nan, from_to(0u, 1u), k);
    }
    return check.status();
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm
