#include <algorithm>
#include <approxsvm/predict/input_map.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "check.hpp"

// Input maps: every MUST of the section, rows against float64 operations written out here, and errors against long
// double (where that is wider than double).

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
struct Section {
    std::vector<std::uint64_t> memory;
    const unsigned char* bytes;
    explicit Section(const Bytes& content)
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
    const Section section(bytes);
    InputMapView map;
    CHECK_EQ(read_input_map(section.bytes, bytes.size(), 2, 2, map), Status::ok);
    const OneRow row(map, {-5.0, 1e9});
    CHECK(row.is_finite);
    CHECK_EQ(row.error, infinite);
    const double unknown[] = {0.0, not_a_number, 1.0};
    CHECK_EQ(norm_above(unknown, 3), infinite);
}

namespace {

/// Two integers to the number of eight bytes.
void append_integers(Bytes& bytes, const std::vector<std::uint32_t>& integers) {
    for (const std::uint32_t integer : integers) append(bytes, integer);
    if (integers.size() % 2 != 0) append(bytes, std::uint32_t{0});
}

/// Of two inputs three outputs: the second from 1.5 on, a category of the first, the first with 9 for NaN.
struct TableBytes {
    std::vector<std::uint32_t> source{1, 0, 0}, ends{1, 3, 3};
    Numbers edges{1.5, 2, 2.5}, values{0, 1, not_a_number, 7, not_a_number, infinite}, nan{not_a_number, 8, 9};
    std::uint32_t n_edges = 3;

    Bytes bytes() const {
        Bytes all = map_head(2, {0, 1}, 1);
        append_stage(all, 3, n_edges, source.size(), {});
        append_integers(all, source);
        append_integers(all, ends);
        for (const Numbers* numbers : {&edges, &values, &nan}) append_all(all, *numbers);
        return all;
    }
};

}  // namespace

TEST(tables_look_up) {
    const Bytes bytes = TableBytes().bytes();
    const Section section(bytes);
    InputMapView map;
    CHECK_EQ(read_input_map(section.bytes, bytes.size(), 2, 3, map), Status::ok);
    const auto mapped = [&](double first, double second) { return OneRow(map, {first, second}).values; };
    CHECK(mapped(2.0, 1.5) == (Numbers{1, 7, 2}));
    CHECK(mapped(2.25, std::nextafter(1.5, 0.0)) == (Numbers{0, 7, 2.25}));
    CHECK(mapped(not_a_number, 2.0) == (Numbers{1, 8, 9}));
    CHECK_EQ(OneRow(map, {2.0, 1.5}).error, 0.0);
    CHECK(takes_nan(map, 0));
    CHECK(!takes_nan(map, 1));
    const Numbers nothing(1);
    Numbers memory(map_doubles(map));
    const RowMapper mapper(map, nothing.data(), memory.data());
    for (const double wrong : {std::nextafter(2.0, 0.0), 2.5, -1e300}) {
        MappedRow rows[map_rows_together];
        mapper.row(0)[0] = wrong;
        mapper.row(0)[1] = 0.0;
        mapper.map(1, false, rows);
        CHECK(!rows[0].is_inside);
        CHECK_EQ(rows[0].outside.found, wrong);
        CHECK_EQ(rows[0].outside.expected, 0.0);  // the raw column
        CHECK(rows[0].outside.step == StageKind::table);
    }
}

TEST(tables_behind_errors) {
    // Halves, which have no error of their own but what the bound says, then steps at 1 and 3.
    Bytes bytes = map_head(1, {0}, 2);
    append_stage(bytes, 1, 0, 1, {0, 0.5, 0, 0.25});  // a bias that is off by 0.25
    append_stage(bytes, 3, 2, 1, {});
    append_integers(bytes, {0});
    append_integers(bytes, {2});
    append_all(bytes, {1, 3, 0, 10, 12, 0});
    const Section section(bytes);
    InputMapView map;
    CHECK_EQ(read_input_map(section.bytes, bytes.size(), 1, 1, map), Status::ok);
    const double raw[] = {0, 1.4, 1.6, 2.4, 2.6, 5.4, 5.6, 6.4, 6.6}, allowed[] = {0, 0, 10, 10, 0, 0, 2, 2, 0};
    for (std::size_t k = 0; k < 9; ++k) {
        const double error = OneRow(map, {raw[k]}).error;
        CHECK(error >= allowed[k] && error <= allowed[k] * (1.0 + 1e-6));
    }
}

TEST(normalizers_and_powers_hold_their_errors) {
    Generator generator(23);
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> exponent(-12.0, 6.0);
    for (std::uint32_t round = 0; round < 3000; ++round) {
        const std::uint32_t norm = round % 3, method = round % 2;
        const std::size_t n = 1 + round % 5;
        const bool scales = round % 7 > 3;
        std::vector<std::uint32_t> columns(n), groups(n, 1);
        Numbers raw(n), divide(n), powers(n);
        for (std::size_t j = 0; j < n; ++j) {
            columns[j] = static_cast<std::uint32_t>(j);
            raw[j] = normal(generator) * std::pow(10.0, exponent(generator));
            divide[j] = 0.5 + std::fabs(normal(generator));
            powers[j] = j == 0 ? 0.0 : 1.5 * normal(generator);
        }
        for (const std::uint32_t kind : {4u, 5u}) {
            Bytes bytes = map_head(n, columns, scales ? 2 : 1);
            if (scales) append_stage(bytes, 0, 1u << part::divide, n, divide);
            append_stage(bytes, kind, kind == 4 ? norm : method, n, kind == 4 ? Numbers{} : powers);
            if (kind == 4) append_integers(bytes, groups);
            const Section section(bytes);
            InputMapView map;
            CHECK_EQ(read_input_map(section.bytes, bytes.size(), n, n, map), Status::ok);
            Numbers row = raw;
            for (double& x : row) x = kind == 5 && method == 0 ? std::fabs(x) : x;
            const OneRow found(map, row);
            long double length = 0, off = 0;
            std::vector<long double> exact(row.begin(), row.end());
            for (std::size_t j = 0; j < n; ++j) {
                exact[j] /= scales ? divide[j] : 1.0L;
                const long double modulus = std::fabs(exact[j]);
                length = norm == 0   ? length + modulus
                         : norm == 1 ? length + modulus * modulus
                                     : std::max(length, modulus);
            }
            if (norm == 1) length = std::sqrt(length);
            for (std::size_t j = 0; j < n; ++j) {
                const bool mirrored = method == 1 && exact[j] < 0;
                const long double p = mirrored ? 2.0L - powers[j] : powers[j], t = std::fabs(exact[j]),
                                  logarithm = method == 1 ? std::log1p(t) : std::log(t),
                                  y = p == 0 ? logarithm : std::expm1(p * logarithm) / p;
                exact[j] = kind == 5 ? (mirrored ? -y : y) : length < least_norm ? exact[j] : exact[j] / length;
                off += (exact[j] - found.values[j]) * (exact[j] - found.values[j]);
            }
            CHECK(std::sqrt(off) <= found.error * 1.001L + 1e-300L);
            CHECK(kind == 5 || length < 2 * least_norm || found.error <= 1e-14);
        }
    }
}

TEST(logarithms_hold_their_errors) {
    Generator generator(17);
    std::uniform_real_distribution<double> uniform(-1.0, 1.0);
    for (int round = 0; round < 2000; ++round) {
        const double offset = round % 3 == 0   ? 1.0
                              : round % 3 == 1 ? 0.0
                                               : 0.1,
                     about = round % 2 ? 1.0 - offset : 0.0, subtract = round % 5 == 0 ? uniform(generator) : 0.0;
        Bytes bytes = map_head(3, {0, 1, 2}, 2);
        append_stage(bytes, 0, 1u << part::subtract, 3, {subtract, subtract, subtract});
        append_stage(bytes, 2, 0, 3, {offset, infinite, offset});
        const Section section(bytes);
        InputMapView map;
        CHECK_EQ(read_input_map(section.bytes, bytes.size(), 3, 3, map), Status::ok);
        Numbers raw(3);
        for (double& x : raw) {
            const double size = std::exp(36.0 * uniform(generator));
            x = (round % 4 < 2 ? about : 0.0) + (round % 4 == 0 ? 0.09 * uniform(generator) / (1.0 + size) : size);
            x = std::fabs(x) + subtract;
        }
        const OneRow row(map, raw);
        CHECK(row.is_finite);
        CHECK_EQ(row.values[1], raw[1] - subtract);
        long double sq_off = 0.0L;
        for (const std::size_t j : {std::size_t{0}, std::size_t{2}}) {
            const long double x = static_cast<long double>(raw[j]) - subtract,
                              wanted = offset == 1.0 ? std::log1p(x) : std::log(x + offset);
            sq_off += (row.values[j] - wanted) * (row.values[j] - wanted);
        }
        if (sizeof(long double) > sizeof(double)) CHECK(std::sqrt(sq_off) <= row.error * 1.001L + 0x1p-60L);
        if (subtract == 0.0) CHECK(row.error <= 0x1p-43 + 0x1p-52 * raw[1]);
    }
}

TEST(rows_are_the_sources_own_and_errors_hold) {
    Generator generator(7);
    std::normal_distribution<double> normal;
    for (int round = 0; round < 400; ++round) {
        const std::size_t n = 1 + generator() % 9, m = 1 + generator() % 5, n_raw = n + generator() % 3;
        const double offset = round % 4 == 0 ? 1e9 : 0.0;
        std::vector<std::uint32_t> columns(n);
        for (std::uint32_t& column : columns) column = static_cast<std::uint32_t>(generator() % n_raw);
        const auto numbers = [&](std::size_t count, double about) {
            Numbers result(count);
            for (double& x : result) x = about + normal(generator);
            return result;
        };
        const Numbers subtract = numbers(n, offset), multiply = numbers(n, 0), divide = numbers(n, 3),
                      add = numbers(n, 1), low = numbers(n, -2), center = numbers(n, 0), matrix = numbers(n * m, 0),
                      bias = numbers(m, 0);
        Numbers high = low;
        for (double& x : high) x += std::fabs(normal(generator)) * 3;
        const bool projects = round % 2 == 0;
        Bytes bytes = map_head(n_raw, columns, projects ? 2 : 1);
        Numbers parts;
        for (const Numbers* part :
             std::initializer_list<const Numbers*>{&subtract, &multiply, &divide, &add, &low, &high}) {
            parts.insert(parts.end(), part->begin(), part->end());
        }
        append_stage(bytes, 0, 0b0111111, n, parts);
        parts.clear();
        const Numbers none(m);
        for (const Numbers* part : {&center, &matrix, &bias, &none})
            parts.insert(parts.end(), part->begin(), part->end());
        if (projects) append_stage(bytes, 1, 0, m, parts);
        const Section section(bytes);
        InputMapView map;
        const std::size_t n_features = projects ? m : n;
        CHECK_EQ(read_input_map(section.bytes, bytes.size(), n_raw, n_features, map), Status::ok);
        CHECK_EQ(map.has_projection, projects);

        const Numbers raw = numbers(n_raw, offset);
        const OneRow row(map, raw);
        CHECK(row.is_finite);
        std::vector<long double> exact(n);
        Numbers own(n);
        for (std::size_t j = 0; j < n; ++j) {
            const double z = raw[columns[j]];
            volatile double x = z - subtract[j];  // each operation rounded by itself
            x = x * multiply[j];
            x = x / divide[j];
            x = x + add[j];
            own[j] = std::min(std::max(x + 0.0, low[j]), high[j]);
            const long double t = (static_cast<long double>(z) - subtract[j]) * multiply[j] / divide[j] + add[j];
            exact[j] = std::min(std::max(t, static_cast<long double>(low[j])), static_cast<long double>(high[j]));
        }
        long double sq_off = 0.0L;
        for (std::size_t k = 0; k < n_features; ++k) {
            long double wanted = projects ? static_cast<long double>(bias[k]) : exact[k];
            for (std::size_t j = 0; projects && j < n; ++j) wanted += (exact[j] - center[j]) * matrix[j * m + k];
            if (!projects) CHECK_EQ(row.values[k], own[k]);
            sq_off += (row.values[k] - wanted) * (row.values[k] - wanted);
        }
        const long double slack = 1e-3L * row.error;  // of long double itself
        if (sizeof(long double) > sizeof(double)) CHECK(std::sqrt(sq_off) <= row.error + slack);
        CHECK(row.error < (offset > 0 ? 1e-12 : 1e-13) * 1e3);
    }
}

// Numbers of 30 bits: products of two need 60, more than a double has, and the sum of few fits a long double.
TEST(projections_in_twice_the_precision_hold_their_errors) {
    static_assert(std::numeric_limits<long double>::digits >= 64, "long double is the judge here");
    Generator generator(11);
    const auto numbers = [&](std::size_t count) {
        Numbers result(count);
        for (double& x : result) x = static_cast<double>(generator() % (1u << 30)) - 0x1p29;
        return result;
    };
    for (int round = 0; round < 400; ++round) {
        const std::size_t n = 1 + generator() % 8, m = 1 + generator() % 5;
        std::vector<std::uint32_t> columns(n);
        for (std::size_t j = 0; j < n; ++j) columns[j] = static_cast<std::uint32_t>(j);
        Numbers parts = numbers(n + n * m), raw = numbers(n);
        const Numbers center(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(n));
        if (round % 2 && n > 1) {  // the last two products cancel but for a few bits
            raw[n - 1] = raw[n - 2] + center[n - 1] - center[n - 2];
            for (std::size_t k = 0; k < m; ++k) {
                parts[n + (n - 1) * m + k] = static_cast<double>(generator() % 4) - parts[n + (n - 2) * m + k];
            }
        }
        const double* matrix = parts.data() + n;
        Numbers stage = parts;
        stage.resize(parts.size() + 2 * m);  // no bias, and no error of it
        Bytes bytes = map_head(n, columns, 1);
        append_stage(bytes, 1, 0, m, stage);
        const Section section(bytes);
        InputMapView map;
        CHECK_EQ(read_input_map(section.bytes, bytes.size(), n, m, map), Status::ok);
        const OneRow row(map, raw, true);
        long double sq_off = 0.0L, sq_rounded = 0.0L;
        for (std::size_t k = 0; k < m; ++k) {
            long double wanted = 0.0L;
            for (std::size_t j = 0; j < n; ++j) {
                wanted += (static_cast<long double>(raw[j]) - center[j]) * matrix[j * m + k];
            }
            sq_off += (row.values[k] - wanted) * (row.values[k] - wanted);
            sq_rounded += wanted * wanted;
        }
        CHECK(std::sqrt(sq_off) <= row.error);
        CHECK(row.error <= 0x1p-50 * std::sqrt(sq_rounded) + 0x1p-40);
    }
}

// What a scaler alone gives is the mapper's, bit for bit, and its errors hold though they come from norms.
TEST(scalers_alone_give_what_the_mapper_gives) {
    Generator generator(13);
    std::normal_distribution<double> normal;
    for (int round = 0; round < 800; ++round) {
        const std::size_t n = 1 + generator() % 40;
        const std::uint32_t present = 1 + static_cast<std::uint32_t>(generator() % 15);  // no limits
        const double offset = round % 4 == 0 ? 1e9 : 0.0,
                     size = std::ldexp(1.0, static_cast<int>(generator() % 600) - 300);
        std::vector<std::uint32_t> columns(n);
        for (std::size_t j = 0; j < n; ++j) columns[j] = static_cast<std::uint32_t>(j);
        Numbers parts, raw(n);
        for (double& x : raw) x = (offset + normal(generator)) * size;
        const double abouts[] = {offset * size, 0.0, 3.0, 0.5}, sizes[] = {size, 1.0, 1.0, 1.0};
        std::vector<const double*> of_part(4, nullptr);
        parts.reserve(4 * n);
        for (std::size_t k = 0; k < 4; ++k) {
            if (!(present >> k & 1)) continue;
            of_part[k] = parts.data() + parts.size();
            for (std::size_t j = 0; j < n; ++j) parts.push_back(abouts[k] + normal(generator) * sizes[k]);
        }
        Bytes bytes = map_head(n, columns, 1);
        append_stage(bytes, 0, present, n, parts);
        const Section section(bytes);
        InputMapView map;
        CHECK_EQ(read_input_map(section.bytes, bytes.size(), n, n, map), Status::ok);
        Numbers gains(map_gain_doubles(map)), values(n);
        fill_map_gains(map, gains.data());
        const ScalerAlone scaler(map, gains.data());
        CHECK(static_cast<bool>(scaler));
        double error = -1.0;
        const OneRow row(map, raw);
        const bool is_mapped = scaler.map(raw.data(), values.data(), error);
        CHECK(is_mapped || std::fabs(values[0]) < 1e-100 || std::fabs(values[0]) > 1e100);
        if (!is_mapped) continue;
        CHECK(values == row.values);
        CHECK(error <= 2.0 * row.error + 1e-300);
        long double sq_off = 0.0L;
        for (std::size_t j = 0; j < n; ++j) {
            long double wanted = raw[j];
            if (of_part[0]) wanted -= of_part[0][j];
            if (of_part[1]) wanted *= of_part[1][j];
            if (of_part[2]) wanted /= of_part[2][j];
            if (of_part[3]) wanted += of_part[3][j];
            sq_off += (values[j] - wanted) * (values[j] - wanted);
        }
        if (sizeof(long double) > sizeof(double)) CHECK(std::sqrt(sq_off) <= error * 1.001L);
        for (const double odd : {infinite, -infinite, not_a_number}) {
            Numbers odd_row = raw;
            odd_row[generator() % n] = odd;
            CHECK(!scaler.map(odd_row.data(), values.data(), error));
        }
    }
    for (const std::uint32_t limited : {1u << part::low | 1u, 1u << part::high | 1u, 1u << part::relative_error | 1u}) {
        Bytes bytes = map_head(1, {0}, 1);
        append_stage(bytes, 0, limited, 1, {1, 0.5});
        const Section section(bytes);
        InputMapView map;
        CHECK_EQ(read_input_map(section.bytes, bytes.size(), 1, 1, map), Status::ok);
        Numbers gains(map_gain_doubles(map));
        fill_map_gains(map, gains.data());
        CHECK(!ScalerAlone(map, gains.data()));
    }
}

TEST(limits_and_overflow) {
    Bytes bytes = map_head(2, {0, 1}, 1);
    append_stage(bytes, 0, 0b0110101, 2, {0.1, 0.1, 3, 3, -1, -1, 1, 1});
    const Section section(bytes);
    InputMapView map;
    CHECK_EQ(read_input_map(section.bytes, bytes.size(), 2, 2, map), Status::ok);
    const OneRow clipped(map, {1e18, -1e18});
    CHECK_EQ(clipped.values[0], 1.0);
    CHECK_EQ(clipped.values[1], -1.0);
    CHECK(clipped.error <= 0x1p-490);
    const OneRow half(map, {0.5, 1e18});
    CHECK(half.error > 0.0 && half.error < 1e-15);

    Bytes grown = map_head(1, {0}, 1);
    append_stage(grown, 0, 1u << part::multiply, 1, {10.0});
    const Section growing(grown);
    CHECK_EQ(read_input_map(growing.bytes, grown.size(), 1, 1, map), Status::ok);
    CHECK(!OneRow(map, {1e308}).is_finite);
    CHECK(OneRow(map, {1e307}).is_finite);
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
        const Section section(bytes);
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
    const Section section(bytes);
    InputMapView map;
    CHECK_EQ(read_input_map(section.bytes, bytes.size(), 1, 1, map), Status::ok);
    CHECK(OneRow(map, {0x1p97}, false, in_float32).error < 0x1p107);
    const OneRow beyond(map, {0x1p98}, false, in_float32);
    CHECK(beyond.is_finite);
    CHECK_EQ(beyond.error, infinite);
}
