#include "parts.hpp"

// The parts of higher degree of an expansion against sums over all their monomials in long double: for blocks, single
// and sparse rows. Compiled once per target.

namespace polynomial {

using namespace approxsvm;
using check::expect;

namespace {

/// One part, its coefficients in memory of their exact size.
struct Part {
    int k;
    std::size_t d;
    std::vector<std::vector<std::size_t>> monomials;
    std::unique_ptr<float[]> coefficients, zeros;

    Part(int degree, std::size_t n_features, Random& random, bool whole_numbers)
        : k(degree),
          d(n_features),
          monomials(artifact_writer::monomials(0, n_features, degree)),
          coefficients(new float[monomials.size()]),
          zeros(new float[n_features]()) {
        for (std::size_t m = 0; m < monomials.size(); ++m) {
            coefficients[m] =
                whole_numbers ? static_cast<float>(random() % 9) - 4 : static_cast<float>(uniform(random, -1, 1));
        }
    }
};

struct Sums {
    long double value = 0, moduli = 0;
};

Sums sums_of(const Part& part, const std::vector<float>& u) {
    Sums sums;
    for (std::size_t m = 0; m < part.monomials.size(); ++m) {
        long double product = part.coefficients[m];
        for (const std::size_t j : part.monomials[m]) product *= u[j];
        sums.value += product;
        sums.moduli += std::fabs(product);
    }
    return sums;
}

/// Returns the largest rounding error of a part with the depths of additions that the certificate assumes.
long double rounding_of(const Part& part, const Sums& sums, long double unit) {
    const long double depth = static_cast<long double>(part.k) * static_cast<long double>(part.d + 1) + 4;
    return depth * unit / (1 - depth * unit) * sums.moduli +
           0x1p-140L * static_cast<long double>(part.monomials.size());
}

void expect_near(const Part& part, const Sums& sums, double value, long double unit, const std::string& how) {
    const long double error = std::fabs(value - sums.value), bound = rounding_of(part, sums, unit);
    EXPECT(error <= bound, "degree " + std::to_string(part.k) + ", d " + std::to_string(part.d) + ", " + how + ": " +
                               check::show(value) + " is off by " + check::show(error) + ", bound " +
                               check::show(bound));
}

template <int Registers>
std::vector<float> by_block(const Part& part, const std::vector<std::vector<float>>& rows) {
    constexpr std::size_t stride = Registers * static_cast<std::size_t>(lanes);
    const std::unique_ptr<float[]> block(new float[part.d * stride]), result(new float[stride]);
    for (std::size_t j = 0; j < part.d; ++j) {
        for (std::size_t r = 0; r < stride; ++r) block[j * stride + r] = rows[r % rows.size()][j];
    }
    part_block<Registers>(part.coefficients.get(), part.k, part.zeros.get(), part.d, block.get(), result.get());
    return {result.get(), result.get() + stride};
}

/// The non-zeros of a row.
template <class Real, class Index>
double by_nonzeros(const Part& part, const std::vector<float>& u) {
    std::vector<Real> values;
    std::vector<Index> columns;
    for (std::size_t j = 0; j < part.d; ++j) {
        if (u[j] == 0.0f) continue;
        values.push_back(static_cast<Real>(u[j]));
        columns.push_back(static_cast<Index>(j));
    }
    return part_sparse(part.coefficients.get(), part.k, 0, part.d, values.data(), columns.data(), values.size());
}

void check_part(const Part& part, const std::vector<std::vector<float>>& rows, bool exact) {
    const std::vector<float> one = by_block<1>(part, rows), two = by_block<2>(part, rows),
                             three = by_block<3>(part, rows);
    for (std::size_t r = 0; r < rows.size(); ++r) {
        const Sums sums = sums_of(part, rows[r]);
        const std::unique_ptr<float[]> u(new float[part.d]);
        std::copy(rows[r].begin(), rows[r].end(), u.get());
        const float alone = part_row(part.coefficients.get(), part.k, part.zeros.get(), part.d, u.get());
        const long double unit = exact ? 0 : 0x1p-24L;
        expect_near(part, sums, static_cast<double>(alone), unit, "alone");
        expect_near(part, sums, static_cast<double>(three[r]), unit, "in a block");
        EXPECT(two[r] == three[r] && (r >= one.size() || one[r] == three[r]),
               "a row depends on the registers beside it");
        expect_near(part, sums, by_nonzeros<float, std::int32_t>(part, rows[r]), exact ? 0 : 0x1p-53L, "sparse");
        expect_near(part, sums, by_nonzeros<double, std::int64_t>(part, rows[r]), exact ? 0 : 0x1p-53L, "sparse");
    }
    for (std::size_t r = 0; r < three.size(); ++r) {
        EXPECT(three[r] == three[r % rows.size()], "equal rows differ in a block");
    }
}

/// Around the widths of a register and of a panel, as far as that many monomials can be summed up one by one.
std::vector<std::size_t> feature_counts(int k) {
    switch (k) {
        case 3:
            return {1, 2, 3, 4, 5, 7, 8, 9, 11, 15, 16, 17, 23, 24, 25, 31, 32, 33, 41};
        case 4:
            return {1, 2, 3, 4, 5, 7, 8, 9, 10, 15, 16, 17, 19, 24, 25};
        case 5:
            return {1, 2, 3, 5, 7, 8, 9, 10, 16, 17};
        default:
            return {1, 2, 3, 5, 7, 8, 9, 10, 12};
    }
}

template <class Number>
std::vector<std::vector<float>> rows_of(std::size_t d, std::size_t n, Random& random, const Number& number) {
    std::vector<std::vector<float>> rows;
    for (std::size_t i = 0; i < n; ++i) {
        std::vector<float> row;
        const double density = i == 0 ? 0 : i % 3 == 0 ? 1 : uniform(random, 0, 1);
        for (std::size_t j = 0; j < d; ++j) row.push_back(uniform(random, 0, 1) < density ? number() : 0.0f);
        rows.push_back(row);
    }
    return rows;
}

}  // namespace

TEST(monomials_are_counted) {
    for (std::size_t d = 1; d <= 12; ++d) {
        std::size_t together = 0, all = 0;
        for (int k = 1; k <= 6; ++k) {
            const std::size_t n = k == 1 ? d : artifact_writer::monomials(0, d, k).size();
            CHECK_EQ(n_monomials(d, k), n);
            if (k > 2) together += n;
            all += n;
            CHECK_EQ(n_higher(d, k), together);
            CHECK_EQ(n_higher_limited(d, k, 1000000), all);
            CHECK_EQ(n_higher_limited(d, k, all), all);
            CHECK_EQ(n_higher_limited(d, k, all - 1), all - 1);
        }
    }
    CHECK_EQ(n_higher_limited(std::size_t{1} << 20, 6, 12345), std::size_t{12345});
}

TEST(exact_to_the_last_bit) {
    Random random(1);
    for (int k = 3; k <= 6; ++k) {
        for (const std::size_t d : feature_counts(k)) {
            const Part part(k, d, random, true);
            // Sums of whole numbers; few of them are so large that float32 would have to round.
            const auto number = [&] { return random() % 4 == 0 ? static_cast<float>(random() % 3) - 1 : 0.0f; };
            check_part(part, rows_of(d, 5, random, number), true);
        }
    }
}

TEST(within_rounding) {
    Random random(2);
    for (int k = 3; k <= 6; ++k) {
        for (const std::size_t d : feature_counts(k)) {
            const Part part(k, d, random, false);
            const double reach = std::exp2(uniform(random, -10, 3));
            const auto number = [&] { return static_cast<float>(uniform(random, -reach, reach)); };
            check_part(part, rows_of(d, 7, random, number), false);
        }
    }
}

TEST(tiny_and_huge_rows) {
    Random random(3);
    for (int k = 3; k <= 6; ++k) {
        const Part part(k, 9, random, false);
        for (const double reach : {1e-45, 1e-38, 1e-20, 1e-7, 13.0, 1e5}) {
            const auto number = [&] { return static_cast<float>(uniform(random, -reach, reach)); };
            check_part(part, rows_of(9, 4, random, number), false);
        }
    }
}

}  // namespace polynomial
