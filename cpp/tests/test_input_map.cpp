#include <approxsvm/predict/input_map.hpp>
#include <cstring>
#include <limits>
#include <vector>

#include "artifact_writer.hpp"
#include "check.hpp"

using namespace approxsvm;
using artifact_writer::append;

// What rows become, and the errors of that: tests/zoo.

TEST(what_errors_are_is_unknown_where_a_gain_overflows) {
    constexpr double infinite = std::numeric_limits<double>::infinity();
    // A feature that is clipped, and therefore without an error, then multiplied beyond float64 and divided again.
    artifact_writer::Bytes bytes;
    for (const std::uint32_t number : {2, 2, 2, 0, 0, 1}) append(bytes, number);  // columns, stages, raw columns
    const auto append_scaler = [&](std::uint32_t parts, const std::vector<double>& numbers) {
        for (const std::uint32_t number : {0u, parts, 2u, 0u}) append(bytes, number);
        for (const double number : numbers) append(bytes, number);
    };
    append_scaler(1u << part::low, {0, -infinite});
    append_scaler(1u << part::multiply | 1u << part::divide, {1e200, 1, 1e-200, 1e-7});
    std::vector<std::uint64_t> section(bytes.size() / 8);  // at an address that is a multiple of 8
    std::memcpy(section.data(), bytes.data(), bytes.size());
    InputMapView map;
    CHECK_EQ(read_input_map(reinterpret_cast<const unsigned char*>(section.data()), bytes.size(), 2, 2, map),
             Status::ok);
    std::vector<double> gains(map_gain_doubles(map)), memory(map_doubles(map));
    fill_map_gains(map, gains.data());
    const RowMapper mapper(map, gains.data(), memory.data());
    MappedRow rows[map_rows_together];
    mapper.row(0)[0] = -5.0;
    mapper.row(0)[1] = 1e9;
    mapper.map(1, false, rows);
    CHECK(rows[0].is_finite);
    CHECK_EQ(rows[0].error, infinite);
    const double unknown[] = {0.0, std::numeric_limits<double>::quiet_NaN(), 1.0};
    CHECK_EQ(norm_above(unknown, 3), infinite);
}
