#include <algorithm>
#include <approxsvm/predict/input_map.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "check.hpp"

// What rows become, and the errors of that, otherwise: tests/zoo. No program but Python's has a source in float32.

using namespace approxsvm;

namespace {

using Generator = std::mt19937_64;
using Bytes = std::vector<unsigned char>;
using Numbers = std::vector<double>;
constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

template <class T>
void append(Bytes& bytes, T value) {
    const unsigned char* raw = reinterpret_cast<const unsigned char*>(&value);
    bytes.insert(bytes.end(), raw, raw + sizeof value);
}
void append_all(Bytes& bytes, const Numbers& numbers) {
    for (const double number : numbers) append(bytes, number);
}

Bytes map_head(std::size_t n_raw, const std::vector<std::uint32_t>& columns, std::uint32_t n_stages) {
    Bytes bytes;
    append(bytes, static_cast<std::uint32_t>(columns.size()));
    append(bytes, n_stages);
    append(bytes, static_cast<std::uint64_t>(n_raw));
    for (const std::uint32_t column : columns) append(bytes, column);
    while (bytes.size() % 8) bytes.push_back(0);
    return bytes;
}
void append_stage(Bytes& bytes, std::uint32_t kind, std::uint32_t present, std::size_t n_outputs,
                  const Numbers& numbers) {
    append(bytes, kind);
    append(bytes, present);
    append(bytes, static_cast<std::uint64_t>(n_outputs));
    append_all(bytes, numbers);
}

/// The bytes at an address that is a multiple of 8.
struct Aligned {
    std::vector<std::uint64_t> memory;
    const unsigned char* bytes;
    explicit Aligned(const Bytes& content)
        : memory(content.size() / 8 + 1), bytes(reinterpret_cast<const unsigned char*>(memory.data())) {
        if (!content.empty()) std::memcpy(memory.data(), content.data(), content.size());
    }
};

/// A row that has been mapped alone, and as the last of several: the same numbers.
struct OneRow {
    Numbers values;
    double error;
    bool is_finite;

    OneRow(const InputMapView& map, const Numbers& raw, bool exactly = false, const SourceRows& source = {}) {
        Numbers gains(map_gain_doubles(map) + 1), memory(map_doubles(map) + 1);
        fill_map_gains(map, gains.data());
        const RowMapper mapper(map, gains.data(), memory.data(), source);
        MappedRow rows[map_rows_together];
        for (std::size_t n = 1; n <= map_rows_together; n += map_rows_together - 1) {
            for (std::size_t r = 0; r < n; ++r) {
                for (std::size_t k = 0; k < map.n_columns; ++k) mapper.row(r)[k] = raw[map.columns[k]];
            }
            mapper.map(n, exactly, rows);
            const MappedRow& last = rows[n - 1];
            const std::size_t n_features = features_of(map);
            const Numbers found(last.values, last.values + n_features);
            for (std::size_t j = 0; n > 1 && j < n_features; ++j) {
                if (!map.has_projection) CHECK(found[j] == values[j] || std::isnan(values[j]));
            }
            if (n > 1) continue;
            values = found;
            error = last.error;
            is_finite = last.is_finite;
        }
    }
    static std::size_t features_of(const InputMapView& map) {
        std::size_t n = map.n_columns;
        for_stages(map, [&](const MapStage& stage) { n = stage.n_outputs; });
        return n;
    }
};

}  // namespace

TEST(what_errors_are_is_unknown_where_a_gain_overflows) {
    // A feature that is clipped, and therefore without an error, then multiplied beyond float64 and divided again.
    Bytes bytes = map_head(2, {0, 1}, 2);
    append_stage(bytes, 0, 1u << part::low, 2, {0, -infinite});
    append_stage(bytes, 0, 1u << part::multiply | 1u << part::divide, 2, {1e200, 1, 1e-200, 1e-7});
    const Aligned section(bytes);
    InputMapView map;
    CHECK_EQ(read_input_map(section.bytes, bytes.size(), 2, 2, map), Status::ok);
    const OneRow row(map, {-5.0, 1e9});
    CHECK(row.is_finite);
    CHECK_EQ(row.error, infinite);
    const double unknown[] = {0.0, not_a_number, 1.0};
    CHECK_EQ(norm_above(unknown, 3), infinite);
}

/// The source's own operations in float32, by both ways of scalers.
TEST(a_source_in_float32) {
    std::mt19937_64 generator(11);
    std::normal_distribution<double> normal;
    const SourceRows in_float32{true, false};
    const std::size_t n = 5;
    for (int round = 0; round < 300; ++round) {
        const std::uint32_t present = 1 + static_cast<std::uint32_t>(generator() % 15);
        Numbers parts, raw(n);
        for (double& x : raw) x = static_cast<float>(normal(generator) * std::ldexp(1.0, int(generator() % 200) - 100));
        for (std::size_t k = 0; k < 4; ++k) {
            for (std::size_t j = 0; present >> k & 1 && j < n; ++j)
                parts.push_back(normal(generator) * std::ldexp(1.0, int(generator() % 40) - 20));
        }
        Bytes bytes = map_head(n, {0, 1, 2, 3, 4}, 1);
        append_stage(bytes, 0, present, n, parts);
        const Aligned section(bytes);
        InputMapView map;
        CHECK_EQ(read_input_map(section.bytes, bytes.size(), n, n, map), Status::ok);
        const OneRow row(map, raw, false, in_float32);
        double sq_off = 0.0;
        for (std::size_t j = 0; j < n; ++j) {
            float x = static_cast<float>(raw[j]);
            const double* next = parts.data() + j;
            for (std::size_t k = 0; k < 4; ++k) {
                if (!(present >> k & 1)) continue;
                const float part = static_cast<float>(*next);
                x = k == part::subtract   ? x - part
                    : k == part::multiply ? x * part
                    : k == part::divide   ? x / part
                                          : x + part;
                next += n;
            }
            sq_off += (row.values[j] - static_cast<double>(x)) * (row.values[j] - static_cast<double>(x));
        }
        CHECK(std::sqrt(sq_off) <= row.error);
        Numbers gains(map_gain_doubles(map)), values(n);
        fill_map_gains(map, gains.data());
        double error;
        if (!ScalerAlone(map, gains.data(), in_float32).map(raw.data(), values.data(), error)) continue;
        CHECK(values == row.values);
        CHECK(std::sqrt(sq_off) <= error);
        CHECK(error >= 0.99 * OneRow(map, raw).error);
    }
    Bytes bytes = map_head(1, {0}, 1);
    append_stage(bytes, 0, 1u << part::multiply, 1, {0x1p30});
    const Aligned section(bytes);
    InputMapView map;
    CHECK_EQ(read_input_map(section.bytes, bytes.size(), 1, 1, map), Status::ok);
    CHECK(OneRow(map, {0x1p97}, false, in_float32).error < 0x1p107);
    const OneRow beyond(map, {0x1p98}, false, in_float32);
    CHECK(beyond.is_finite);
    CHECK_EQ(beyond.error, infinite);
}
