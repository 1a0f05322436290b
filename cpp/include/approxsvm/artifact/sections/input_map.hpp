// Reads the section "input_map" in place (models/FORMAT.md). Every MUST is checked before a pointer is returned. The
// map is evaluated by predict/rows/input_map.hpp.
#ifndef APPROXSVM_ARTIFACT_SECTIONS_INPUT_MAP_HPP
#define APPROXSVM_ARTIFACT_SECTIONS_INPUT_MAP_HPP

#include "../ops/ops.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// An op without its arrays.
inline MapOp op_of(const OpHeader& header) {
    const std::size_t n_outputs = static_cast<std::size_t>(header.n_outputs);
    return {static_cast<OpKind>(header.kind), header.parts, header.first, header.n_inputs, n_outputs, {}, {}};
}

// Reads the op at p; returns the start of the next one. The bytes have been validated.
template <Parts parts = all_parts>
inline const unsigned char* read_op(const unsigned char* p, MapOp& op) {
    op = op_of(read_at<OpHeader>(p, 0));
    OpArrays arrays(p + sizeof(OpHeader));
    OpsOf<parts>::with(op.kind, true, [&](auto kind) { return kind.find_parts(op, arrays), true; });
    return p + sizeof(OpHeader) + static_cast<std::size_t>(arrays.n_bytes());
}

// Returns the number of bytes after the header of an op of a given kind; its numbers of inputs and outputs must be
// valid.
template <class Kind>
inline ClaimedSize n_bytes_after(const OpHeader& header) {
    MapOp op = op_of(header);
    OpArrays sizes(nullptr);
    Kind::find_parts(op, sizes);
    return sizes.n_bytes();
}

// Calls use(op) for all ops of a validated map, in order.
template <Parts parts = all_parts, class Use>
inline void for_ops(const InputMapView& map, const Use& use) {
    const unsigned char* next = map.ops;
    for (std::size_t k = 0; k < map.n_ops; ++k) {
        MapOp op;
        next = read_op<parts>(next, op);
        use(op);
    }
}

// Checks the op with this index, which begins at byte `at` of the section and is applied to a row of n features, and
// sets `at` to the start of the next op. Also returns false if the program omits the part that contains the op.
template <Parts parts = all_parts>
APPROXSVM_COLD inline bool read_checked_op(Check& check, const unsigned char* bytes, std::size_t n_bytes, std::size_t n,
                                           std::uint64_t index, MapOp& op, std::size_t& at) {
    if (!check(field::any_size, n_bytes, at_least(at + sizeof(OpHeader)))) return false;
    const OpHeader header = read_at<OpHeader>(bytes, at);
    if (!check(field::op_kind, header.kind, from_to(0u, AllOps::last), index)) return false;
    return OpsOf<parts>::with(static_cast<OpKind>(header.kind), false, [&](auto kind) {
        using Kind = decltype(kind);
        check(field::op_parts, header.parts,
              Kind::most_parts == 0 ? equal_to(0) : from_to(Kind::least_parts, Kind::most_parts), index);
        const std::size_t n_inputs = header.n_inputs;
        if (!check(field::op_n_inputs, n_inputs, from_to(0, n), index) ||
            !check(field::op_first, std::size_t{header.first}, from_to(0, n - n_inputs), index) ||
            !check(field::op_n_outputs, header.n_outputs,
                   Kind::in_place ? equal_to(n_inputs) : from_to(0, max_n_features - (n - n_inputs)), index) ||
            !check(field::any_size, n_bytes, at_least(at + sizeof(OpHeader) + n_bytes_after<Kind>(header))))
            return false;
        at = static_cast<std::size_t>(read_op<parts>(bytes + at, op) - bytes);
        return kind.is_valid(check, op);
    });
}

// Returns whether all ops in a section are affine.
APPROXSVM_COLD inline bool only_scales(const unsigned char* bytes, std::size_t n_bytes) {
    if (n_bytes < sizeof(InputMapHeader)) return true;
    const InputMapHeader counts = read_at<InputMapHeader>(bytes, 0);
    ClaimedSize at = (sizeof(InputMapHeader) + 4 * ClaimedSize{counts.n_columns} + 7) / 8 * 8;
    for (std::uint64_t k = 0; k < counts.n_ops && at <= n_bytes && n_bytes - at >= sizeof(OpHeader); ++k) {
        const OpHeader header = read_at<OpHeader>(bytes, static_cast<std::size_t>(at));
        if (header.kind != number_of(OpKind::affine)) return false;
        at += sizeof(OpHeader) + n_bytes_after<AffineOp>(header);
    }
    return true;
}

// Returns whether the map replaces NaN in a used column with a number.
template <Parts parts = all_parts>
inline bool takes_nan(const InputMapView& map, std::size_t column) {
    std::size_t j = column;
    const unsigned char* next = map.ops;
    for (std::size_t k = 0; k < map.n_ops; ++k) {
        MapOp op;
        next = read_op<parts>(next, op);
        if (!op.takes(j)) {
            j = op.passed(j);
            continue;
        }
        const std::size_t input = j - op.first, output = OpsOf<parts>::with(op.kind, input, [&](auto kind) {
                                                    return kind.by_feature ? input : kind.follow_nan(op, input);
                                                });
        if (output >= nan_replaced) return output == nan_replaced;
        j = op.first + output;
    }
    return false;
}

// Returns the raw column on which feature j of an op's input depends, or j if it depends on several.
template <Parts parts = all_parts>
inline std::size_t raw_column(const InputMapView& map, std::size_t op_number, std::size_t j) {
    for (std::size_t wanted = op_number; wanted-- > 0;) {
        const unsigned char* next = map.ops;
        MapOp op;
        for (std::size_t k = 0; k <= wanted; ++k) next = read_op<parts>(next, op);
        if (!op.makes(j)) {
            j = op.before(j);
            continue;
        }
        const std::size_t output = j - op.first, origin = OpsOf<parts>::with(op.kind, output, [&](auto kind) {
                                                     return kind.by_feature ? output : kind.origin(op, output);
                                                 });
        if (origin == several_columns) return j;
        j = op.first + origin;
    }
    return map.columns[j];
}

// Describes the section's map, or reports that the section is invalid. `bytes` is null if there is no map.
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
    check(field::input_map_by_column, counts.by_column, from_to(0, 1));  // only data frames use by_column
    if (check.status() != Status::ok) return check.status();
    const std::size_t columns_end = sizeof(InputMapHeader) + 4 * n_columns, ops_begin = (columns_end + 7) / 8 * 8;
    if (!check(field::any_size, n_bytes, at_least(ops_begin)) || !check.zeros(bytes, columns_end, ops_begin))
        return check.status();
    map.columns = reinterpret_cast<const std::uint32_t*>(bytes + sizeof(InputMapHeader));
    check.each(field::input_map_column, map.columns, n_columns, from_to(0, n_raw_features - 1));
    check(field::input_map_n_ops, counts.n_ops, from_to(0, n_bytes / sizeof(OpHeader)));
    map.n_columns = map.widest = n_columns;
    map.takes_all_columns = n_columns == n_raw_features;
    for (std::size_t k = 0; k < n_columns; ++k) map.takes_all_columns &= map.columns[k] == k;
    map.n_ops = counts.n_ops;
    map.ops = bytes + ops_begin;
    map.scales_alone = true;
    std::size_t at = ops_begin, n = n_columns, n_read = 0;
    for (; check.status() == Status::ok && n_read < map.n_ops; ++n_read) {
        MapOp op;
        if (!read_checked_op<parts>(check, bytes, n_bytes, n, n_read, op, at)) break;
        n = op.passed(n);
        if (op.kind != OpKind::affine) map.scales_alone = false;
        map.widest = n > map.widest ? n : map.widest;
        map.has_inverse_normal |= op.kind == OpKind::inverse_normal;
        map.has_projection |= OpsOf<parts>::with(op.kind, false, [](auto kind) { return kind.sums; });
    }
    if (check.status() == Status::ok && n_read < map.n_ops) return Status::left_out;
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

#endif
