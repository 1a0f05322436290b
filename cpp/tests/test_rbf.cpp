#include "parts.hpp"

// The exact engine against sums in long double, within the rounding bound that the certificate uses. Compiled once per
// target; a CPU that lacks the target's instructions skips the whole program.

using namespace approxsvm;
using check::expect;
using row_forms::blocks_of;
using row_forms::random_rows;
using row_forms::random_vectors;
using row_forms::Rows;

namespace {

template <class Real>
constexpr long double unit_roundoff = std::numeric_limits<Real>::epsilon() / 2;

std::uint64_t bits_of(double x) {
    std::uint64_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}

// --- models and rows ---

/// Support vectors in memory of exactly the promised size, at an address that is not aligned.
template <class Real>
struct KernelModel {
    std::size_t n_sv, n_features;
    double half_theta;
    std::vector<double> vectors, coef;  // (n_sv, n_features), every entry a Real; (n_sv,)
    std::vector<char> memory, column_memory;
    KernelSum<Real> expansion, by_columns;  // the same support vectors in both orders

    KernelModel(std::vector<double> all_vectors, std::vector<double> all_coef, std::size_t features, double half_theta_,
                std::size_t misalignment = 1)
        : n_sv(all_coef.size()),
          n_features(features),
          half_theta(half_theta_),
          vectors(std::move(all_vectors)),
          coef(std::move(all_coef)),
          memory(misalignment + kernel_expansion_bytes<Real>(n_sv, n_features)) {
        KernelExpansionWriter<Real> writer(memory.data() + misalignment, n_sv, n_features, half_theta);
        for (std::size_t i = 0; i < n_sv; ++i) {
            writer.add_support_vector({vectors.data() + i * n_features, nullptr, n_features}, coef[i],
                                      std::fabs(coef[i]));
        }
        expansion = writer.expansion();
        lay_out_columns(misalignment);
    }

  private:
    void lay_out_columns(std::size_t misalignment) {
        const std::size_t n_values =
            n_sv * n_features - static_cast<std::size_t>(std::count(vectors.begin(), vectors.end(), 0.0));
        column_memory.resize(misalignment + kernel_expansion_bytes<Real>(n_sv, n_features, n_values));
        KernelExpansionWriter<Real> writer(column_memory.data() + misalignment, n_sv, n_features, half_theta, n_values);
        for (std::size_t i = 0; i < n_sv; ++i) {
            for (const std::uint32_t j : nonzeros(i).first) writer.count(j);
        }
        writer.finish_counting();
        for (std::size_t i = 0; i < n_sv; ++i) {
            const auto x = nonzeros(i);
            writer.add_support_vector({x.second.data(), x.first.data(), x.first.size()}, coef[i], std::fabs(coef[i]));
        }
        by_columns = writer.expansion();
    }

    /// Features and values.
    std::pair<std::vector<std::uint32_t>, std::vector<double>> nonzeros(std::size_t i) const {
        std::pair<std::vector<std::uint32_t>, std::vector<double>> found;
        for (std::size_t j = 0; j < n_features; ++j) {
            const double value = vectors[i * n_features + j];
            if (value == 0.0) continue;
            found.first.push_back(static_cast<std::uint32_t>(j));
            found.second.push_back(value);
        }
        return found;
    }
};

struct Sums {
    double sum, moduli;
};

/// Rows in blocks of Registers registers, the missing ones of the last block zero.
template <int Registers, class Real>
std::vector<Sums> block_sums(const KernelModel<Real>& model, const Rows<Real>& rows) {
    constexpr std::size_t width = static_cast<std::size_t>(Registers * lanes_of<Real>);
    const std::size_t n_blocks = (rows.size() + width - 1) / width, d = model.n_features;
    const std::vector<Real> blocks = blocks_of(rows, d, width);
    std::vector<Real> half_sq_norm(n_blocks * width);
    std::vector<double> sum(n_blocks * width), moduli(n_blocks * width);
    for (std::size_t b = 0; b < n_blocks; ++b) {
        half_sq_norms_block<Registers>(model.expansion, blocks.data() + b * d * width, half_sq_norm.data() + b * width);
    }
    kernel_sums_block<Registers>(model.expansion, blocks.data(), half_sq_norm.data(), sum.data(), moduli.data(),
                                 n_blocks);
    std::vector<Sums> sums(rows.size());
    for (std::size_t r = 0; r < rows.size(); ++r) sums[r] = {sum[r], moduli[r]};
    return sums;
}

template <class Real>
Sums row_sums(const KernelModel<Real>& model, const std::vector<Real>& row) {
    Sums sums;
    kernel_sums_row(model.expansion, row.data(), half_sq_norm_row(model.expansion, row.data(), row.size()), sums.sum,
                    sums.moduli);
    return sums;
}

template <class Real>
std::vector<Sums> sparse_sums_of(const KernelSum<Real>& expansion, const Rows<Real>& rows) {
    const row_forms::SparseRows<Real> sparse(
        rows, [&](const Real* values, std::size_t n) { return half_sq_norm_row(expansion, values, n); });
    std::vector<double> sum(rows.size()), moduli(rows.size());
    std::vector<unsigned char> memory(expansion.n_panels * cache_line_bytes + cache_line_bytes);
    Carver carver(memory.data());
    kernel_sums_sparse(expansion, sparse.values.data(), sparse.columns.data(), sparse.starts.data(), rows.size(),
                       sparse.half_sq_norm.data(), sum.data(), moduli.data(), carver.take<Real>(0));
    std::vector<Sums> sums(rows.size());
    for (std::size_t r = 0; r < rows.size(); ++r) sums[r] = {sum[r], moduli[r]};
    return sums;
}

template <class Real>
std::vector<Sums> sparse_sums(const KernelModel<Real>& model, const Rows<Real>& rows) {
    return sparse_sums_of(model.expansion, rows);
}
template <class Real>
std::vector<Sums> column_sums(const KernelModel<Real>& model, const Rows<Real>& rows) {
    return sparse_sums_of(model.by_columns, rows);
}

// --- the judge ---

struct Reference {
    long double sum = 0, moduli = 0, coef_moduli = 0, max_modulus = 0, max_norm = 0, row_norm = 0;
};

template <class Real>
Reference reference(const KernelModel<Real>& model, const std::vector<Real>& row) {
    Reference result;
    for (std::size_t j = 0; j < row.size(); ++j) result.row_norm += static_cast<long double>(row[j]) * row[j];
    result.row_norm = std::sqrt(result.row_norm);
    for (std::size_t i = 0; i < model.n_sv; ++i) {
        long double sq_distance = 0, vector_sq_norm = 0;
        for (std::size_t j = 0; j < row.size(); ++j) {
            const long double x = model.vectors[i * model.n_features + j], difference = x - row[j];
            sq_distance += difference * difference;
            vector_sq_norm += x * x;
        }
        const long double a = model.coef[i], kernel = std::exp(-model.half_theta * sq_distance);
        result.sum += a * kernel;
        result.moduli += std::fabs(a) * kernel;
        result.coef_moduli += std::fabs(a);
        result.max_modulus = std::max(result.max_modulus, std::fabs(a));
        result.max_norm = std::max(result.max_norm, std::sqrt(vector_sq_norm));
    }
    return result;
}

/// The bound of the norms form, from what a prediction knows: the computed sum of moduli. `path` is that of the
/// roundings to an inner product.
template <class Real>
long double error_bound(const KernelModel<Real>& model, const Reference& reference, double moduli, std::size_t path) {
    constexpr bool narrow = std::is_same_v<Real, float>;
    const long double u = unit_roundoff<Real>, n = static_cast<long double>(model.n_sv);
    const long double reach = reference.max_norm + reference.row_norm;
    const long double d = 1.01L * u * static_cast<long double>(path + 5) * model.half_theta * reach * reach;
    const long double s =
        std::min(reference.coef_moduli, 1.001L * moduli + (narrow ? 1e-37L : 1e-300L) * reference.coef_moduli);
    const long double roundings = narrow ? 6.1L * u : (n + 6.1L) * u;
    return 1.05L * s * (std::expm1(2 * d) + roundings) + n * std::ldexp(reference.max_modulus, narrow ? -120 : -1020);
}

template <class Real>
struct Worst {
    long double ratio = 0;

    void judge(const KernelModel<Real>& model, const Reference& reference, const Sums& sums, const std::string& what) {
        judge(model, reference, sums, what, inner_product_path(model.n_features));
    }
    void judge(const KernelModel<Real>& model, const Reference& reference, const Sums& sums, const std::string& what,
               std::size_t path) {
        const long double bound = error_bound(model, reference, sums.moduli, path);
        const long double error =
            std::max(std::fabs(sums.sum - reference.sum), std::fabs(sums.moduli - reference.moduli));
        if (bound > 0) ratio = std::max(ratio, error / bound);
        if (error <= bound) return;
        std::ostringstream message;
        message << what << ", n_sv " << model.n_sv << ", n_features " << model.n_features << ": error " << error
                << " exceeds " << bound;
        check::report(__FILE__, __LINE__, message.str());
    }
};

template <class Real>
const char* name_of() {
    return std::is_same_v<Real, float> ? "float" : "double";
}

// --- random models ---

using Generator = std::mt19937_64;

/// norm: of the support vectors; every seventh is a duplicate of one before, with another coefficient.
template <class Real>
KernelModel<Real> random_model(Generator& generator, std::size_t n_sv, std::size_t n_features, double norm,
                               double coef_exponent = 0) {
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform(-1.0, 1.0), theta(0.5, 2.0);
    const double share_of_zeros = generator() % 3 == 0 ? 0.93 : 0.2;  // by columns, few are frequent or all
    const std::vector<double> vectors = random_vectors<Real>(generator, n_sv, n_features, norm, share_of_zeros);
    std::vector<double> coef;
    for (std::size_t i = 0; i < n_sv; ++i) {
        coef.push_back(normal(generator) * std::pow(10.0, coef_exponent * uniform(generator)));
    }
    return KernelModel<Real>(vectors, coef, n_features, theta(generator), generator() % 64);
}

bool same(const Sums& a, const Sums& b) {
    return bits_of(a.sum) == bits_of(b.sum) && bits_of(a.moduli) == bits_of(b.moduli);
}

/// All ways to evaluate the rows: within the bound, and bitwise the same however rows are grouped.
template <class Real>
void check_rows(const KernelModel<Real>& model, const Rows<Real>& rows, std::size_t n_judged, Worst<Real>& worst) {
    const std::vector<Sums> block = block_sums<3>(model, rows), sparse = sparse_sums(model, rows);
    const std::vector<Sums> one = block_sums<1>(model, rows), two = block_sums<2>(model, rows);
    const std::vector<Sums> columns = column_sums(model, rows);
    const std::size_t column_path = std::max(inner_product_path(model.n_features), model.by_columns.columns.max_values);
    for (std::size_t r = 0; r < rows.size(); ++r) {
        EXPECT(same(block[r], one[r]) && same(block[r], two[r]), "a block's width changes a result");
        if ((r + 1) % sparse_block_rows > 1) continue;  // the rows about the end of a block
        EXPECT(same(sparse[r], sparse_sums(model, Rows<Real>{rows[r]})[0]), "a sparse row depends on its block");
    }
    for (std::size_t k = 0; k < n_judged && k < rows.size(); ++k) {
        const std::size_t r = k % 2 == 0 ? k : rows.size() - k;
        const Reference truth = reference(model, rows[r]);
        worst.judge(model, truth, block[r], std::string("block of ") + name_of<Real>());
        worst.judge(model, truth, row_sums(model, rows[r]), std::string("row of ") + name_of<Real>());
        worst.judge(model, truth, sparse[r], std::string("sparse row of ") + name_of<Real>());
        EXPECT(same(sparse[r], sparse_sums(model, Rows<Real>{rows[r]})[0]), "a sparse row depends on its neighbours");
        worst.judge(model, truth, columns[r], std::string("columns of ") + name_of<Real>(), column_path);
    }
}

constexpr std::size_t numbers_of_vectors[] = {0, 1, 7, 8, 9, 15, 16, 17, 100};

template <class Real>
void check_sizes() {
    Generator generator(20140312);
    Worst<Real> worst;
    std::vector<std::size_t> features = {0, 64, 65, 123, 257, 513, 530};
    for (std::size_t d = 1; d <= 40; ++d) features.push_back(d);
    for (const std::size_t d : features) {
        for (const std::size_t n_sv : numbers_of_vectors) {
            const KernelModel<Real> model = random_model<Real>(generator, n_sv, d, 1.0);
            const std::size_t n_rows = 1 + generator() % (5 * static_cast<std::size_t>(lanes));
            check_rows(model, random_rows(generator, model, n_rows, 1.0), 3, worst);
        }
    }
    for (const std::size_t d : {1u, 5u, 16u, 17u, 33u, 123u, 257u}) {
        const KernelModel<Real> model = random_model<Real>(generator, 1000, d, 1.0);
        check_rows(model, random_rows(generator, model, 2 * sparse_block_rows + 3, 1.0), 5, worst);
    }
    std::cout << "    " << name_of<Real>() << ": worst error / bound " << worst.ratio << '\n';
}

template <class Real>
void check_isolation() {
    Generator generator(5);
    const KernelModel<Real> model = random_model<Real>(generator, 50, 20, 1.0);
    const Rows<Real> calm = random_rows(generator, model, 7 * static_cast<std::size_t>(lanes), 1.0);
    const std::vector<Sums> block = block_sums<3>(model, calm), sparse = sparse_sums(model, calm);
    const Real large = std::numeric_limits<Real>::max();
    const Real sizes[] = {std::sqrt(large), std::sqrt(large) * 3, large / 2, large};
    for (std::size_t r = 0; r < calm.size(); ++r) {
        Rows<Real> rows = calm;
        for (std::size_t j = 0; j < rows[r].size(); ++j) {
            rows[r][j] = sizes[r % 4] * static_cast<Real>(j % 3 == 0 ? 1 : j % 3 == 1 ? -1 : 0.5);
        }
        const std::vector<Sums> new_block = block_sums<3>(model, rows), new_sparse = sparse_sums(model, rows);
        for (std::size_t i = 0; i < rows.size(); ++i) {
            if (i == r) {
                const Sums row = row_sums(model, rows[i]);
                for (const Sums& sums : {new_block[i], new_sparse[i], row}) {
                    EXPECT(sums.sum == 0.0 && sums.moduli == 0.0, "a row out of reach has a kernel sum");
                }
            } else {
                EXPECT(same(block[i], new_block[i]) && same(sparse[i], new_sparse[i]),
                       "a huge row changes its neighbours");
            }
        }
    }
}

/// Support vectors whose squared norm overflows are out of reach of every row.
template <class Real>
void check_huge_vectors() {
    const double huge = std::sqrt(static_cast<double>(std::numeric_limits<Real>::max())) * 2;
    const KernelModel<Real> model({1, 2, huge, -huge, 0, huge}, {1, 1e3, -1e3}, 2, 1.0);
    for (const Sums& sums : {row_sums(model, std::vector<Real>{1, 2}), block_sums<1>(model, Rows<Real>{{1, 2}})[0]}) {
        EXPECT(std::fabs(sums.sum - 1) < 1e-30 && std::fabs(sums.moduli - 1) < 1e-30, "a vector out of reach counts");
    }
}

// --- exp ---

/// |result - exp(x)| in units in the last place of exp(x).
double ulp_error(double x, double result) {
    const long double expected = std::exp(static_cast<long double>(x));
    return static_cast<double>(
        std::ldexp(std::fabs(static_cast<long double>(result) - expected), 52 - std::ilogb(expected)));
}

double worst_ulp(const double* x) {
    double result[lanes64], worst = 0;
    store(result, exp_nonpositive(load(x)));
    for (int i = 0; i < lanes64; ++i) worst = std::max(worst, ulp_error(x[i], result[i]));
    return worst;
}

}  // namespace

TEST(float64_exp_is_within_its_bound) {
    if (std::numeric_limits<long double>::digits == 53) return;  // no better judge here
    Generator generator(3);
    std::uniform_real_distribution<double> all(exp64_min_argument, 0.0), near(-2.0, 0.0);
    std::uniform_int_distribution<int> power(0, 1021), tiny(-1074, 0);
    std::uniform_real_distribution<double> offset(-1e-9, 1e-9);
    const int n_registers = 2'000'000 / lanes64;
    double worst = 0;
    for (int k = 0; k < n_registers; ++k) {
        double x[lanes64];
        for (double& value : x) {
            switch (generator() % 4) {
                case 0:
                    value = near(generator);
                    break;
                case 1:  // where the range reduction changes n
                    value = -(power(generator) + 0.5) * 0.6931471805599453 + offset(generator);
                    value = std::max(value, exp64_min_argument);
                    break;
                case 2:
                    value = -std::ldexp(near(generator) * -0.5, tiny(generator));
                    break;
                default:
                    value = all(generator);
            }
        }
        worst = std::max(worst, worst_ulp(x));
    }
    std::cout << "    " << n_registers * lanes64 << " arguments, worst " << worst << " ULP\n";
    CHECK(worst <= 1.5);
}

TEST(float64_exp_at_the_ends) {
    const double infinity = std::numeric_limits<double>::infinity();
    const double x[] = {0.0, -0.0, -DBL_MIN, -DBL_TRUE_MIN, -708.0, -708.1, -1e300, -infinity, std::nan("")};
    for (const double value : x) {
        double result[lanes64];
        store(result, exp_nonpositive(set1(value)));
        for (const double y : result) {
            if (value > -1e-300) {
                CHECK_EQ(y, 1.0);
            } else {
                CHECK(ulp_error(-708.0, y) <= 1.5);
            }
        }
    }
}

TEST(float64_tanh_is_within_its_bound) {
    Generator generator(4);
    std::uniform_real_distribution<double> near(-3.0, 3.0), wide(-400.0, 400.0), power(-1074.0, 1023.0);
    long double worst = 0;
    const int n_registers = 160'000 / lanes64;
    for (int k = 0; k < n_registers; ++k) {
        double x[lanes64], result[lanes64];
        for (double& value : x) {
            value = generator() % 2 ? near(generator) : wide(generator);
            if (generator() % 4 == 0) value = std::copysign(std::exp2(power(generator)), value);
        }
        f64v one[1] = {load(x)};
        hyperbolic_tangent(one);
        store(result, one[0]);
        for (int i = 0; i < lanes64; ++i) {
            CHECK(std::fabs(result[i]) <= 1.0);
            worst = std::max(worst, std::fabs(result[i] - std::tanh(static_cast<long double>(x[i]))));
        }
    }
    CHECK(worst > 0);
    CHECK(worst <= tanh_error_units * 0x1p-53L);
}

TEST(float64_tanh_at_the_ends) {
    const double infinity = std::numeric_limits<double>::infinity();
    for (const double value : {0.0, -0.0, infinity, -infinity, 1e300, -1e300, DBL_TRUE_MIN, std::nan("")}) {
        double result[lanes64];
        f64v one[1] = {set1(value)};
        hyperbolic_tangent(one);
        store(result, one[0]);
        for (const double y : result) {
            if (std::isnan(value)) {
                CHECK(std::isnan(y));
            } else {
                CHECK(std::fabs(y - std::tanh(value)) <= tanh_error_units * 0x1p-53);
            }
        }
    }
}

TEST(registers_of_float64) {
    double x[lanes64], y[lanes64], result[lanes64];
    float narrow[lanes];
    for (int i = 0; i < lanes64; ++i) x[i] = i - 1.5, y[i] = 0.25 * i;
    for (int i = 0; i < lanes; ++i) narrow[i] = 0.1f * static_cast<float>(i + 1);
    const auto check_lanes = [&](f64v actual, auto expected) {
        store(result, actual);
        for (int i = 0; i < lanes64; ++i) CHECK_EQ(result[i], expected(i));
    };
    check_lanes(zero64(), [](int) { return 0.0; });
    check_lanes(set1(0.1), [](int) { return 0.1; });
    check_lanes(add(load(x), load(y)), [&](int i) { return x[i] + y[i]; });
    check_lanes(div(load(x), set1(0.75)), [&](int i) { return x[i] / 0.75; });
    check_lanes(sub(load(x), load(y)), [&](int i) { return x[i] - y[i]; });
    check_lanes(mul(load(x), load(y)), [&](int i) { return x[i] * y[i]; });
    check_lanes(fmadd(load(x), load(y), load(x)), [&](int i) { return x[i] * y[i] + x[i]; });
    check_lanes(max_or(load(x), set1(0.0)), [&](int i) { return x[i] > 0 ? x[i] : 0.0; });
    check_lanes(min_or_nan(load(x), set1(0.0)), [&](int i) { return x[i] > 0 ? 0.0 : x[i]; });
    check_lanes(max_or(set1(std::nan("")), set1(-3.0)), [](int) { return -3.0; });
    check_lanes(widen_low(load(narrow)), [&](int i) { return static_cast<double>(narrow[i]); });
    check_lanes(widen_high(load(narrow)), [&](int i) { return static_cast<double>(narrow[lanes64 + i]); });
    for (const int n : {-1022, -1, 0, 1, 1023}) {
        check_lanes(exp2_of_shifted(set1(6755399441055744.0 + n)), [&](int) { return std::ldexp(1.0, n); });
    }
    store(result, min_or_nan(set1(std::nan("")), set1(0.0)));
    for (const double value : result) CHECK(std::isnan(value));
    store(narrow, min_or_nan(set1(std::nanf("")), set1(0.0f)));
    for (const float value : narrow) CHECK(std::isnan(value));
    store(narrow, min_or_nan(set1(2.0f), set1(-1.0f)));
    for (const float value : narrow) CHECK_EQ(value, -1.0f);
}

// --- kernel sums ---

TEST(inner_product_path_covers_every_chunk) {
    CHECK_EQ(inner_product_path(0), 0u);
    CHECK_EQ(inner_product_path(1), 2u);
    CHECK_EQ(inner_product_path(16), 17u);
    CHECK_EQ(inner_product_path(123), 24u);
    CHECK_EQ(inner_product_path(512), 48u);
    CHECK_EQ(inner_product_path(780), 57u);
    for (std::size_t d = 1; d < 2000; ++d) CHECK(inner_product_path(d) <= std::min<std::size_t>(32, d) + (d + 31) / 32);
}

TEST(sizes_float) {
    check_sizes<float>();
}
TEST(sizes_double) {
    check_sizes<double>();
}

TEST(a_row_out_of_reach_changes_nothing) {
    check_isolation<float>();
    check_isolation<double>();
}

TEST(a_support_vector_out_of_reach_changes_nothing) {
    check_huge_vectors<float>();
    check_huge_vectors<double>();
}
