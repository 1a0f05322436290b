#include "parts.hpp"

// The sums of all one-vs-one functions against the double loop that LIBSVM writes, in long double, within the rounding
// bound of the exact engine. Compiled once per target.

using namespace approxsvm;
using check::expect;
using row_forms::blocks_of;
using row_forms::random_rows;
using row_forms::random_vectors;
using row_forms::Rows;

namespace {

using Generator = std::mt19937_64;
using Counts = std::vector<std::uint32_t>;

std::size_t total(const Counts& counts) {
    std::size_t sum = 0;
    for (const std::uint32_t n : counts) sum += n;
    return sum;
}

// --- models and rows ---

/// Support vectors in memory of exactly the promised size, full of NaN, at an address that is not aligned.
template <class Real>
struct ClassModel {
    Counts counts;
    std::size_t n_classes, n_sv, n_features;
    double half_theta;
    std::vector<double> vectors;  // (n_sv, n_features), every entry a Real
    std::vector<double> coef;     // (n_classes - 1, n_sv), as in LIBSVM
    std::vector<double> weights;  // (n_sv,)
    std::vector<char> memory, column_memory;
    ClassKernelSum<Real> expansion, by_columns;  // the same support vectors in both orders

    ClassModel(Counts all_counts, std::vector<double> all_vectors, std::vector<double> all_coef, std::size_t features,
               double half_theta_, std::size_t misalignment = 1)
        : counts(std::move(all_counts)),
          n_classes(counts.size()),
          n_sv(total(counts)),
          n_features(features),
          half_theta(half_theta_),
          vectors(std::move(all_vectors)),
          coef(std::move(all_coef)),
          memory(misalignment + class_kernel_bytes<Real>(sizes(), n_features), '\xff') {
        const std::ptrdiff_t stride = static_cast<std::ptrdiff_t>(n_sv);
        ClassKernelExpansionWriter<Real, std::uint32_t> writer(memory.data() + misalignment, sizes(), n_features,
                                                               half_theta);
        for (std::size_t s = 0; s < n_sv; ++s) {
            weights.push_back(largest_modulus(coef.data() + s, n_classes - 1, stride) * (1.0 + static_cast<double>(s)));
            writer.add_support_vector({vectors.data() + s * n_features, nullptr, n_features}, coef.data() + s, stride,
                                      weights[s]);
        }
        expansion = writer.expansion();
        lay_out_columns(misalignment);
    }
    void lay_out_columns(std::size_t misalignment) {  // zeros are values, too
        std::vector<std::uint32_t> features(n_features);
        std::iota(features.begin(), features.end(), 0u);
        const std::size_t n_values = n_sv * n_features;
        column_memory.resize(misalignment + class_kernel_bytes<Real>(sizes(), n_features, n_values), '\xff');
        ClassKernelExpansionWriter<Real, std::uint32_t> writer(column_memory.data() + misalignment, sizes(), n_features,
                                                               half_theta, n_values);
        for (std::size_t s = 0; s < n_sv; ++s) {
            for (const std::uint32_t j : features) writer.count(j);
        }
        writer.finish_counting();
        for (std::size_t s = 0; s < n_sv; ++s) {
            writer.add_support_vector({vectors.data() + s * n_features, features.data(), n_features}, coef.data() + s,
                                      static_cast<std::ptrdiff_t>(n_sv), weights[s]);
        }
        by_columns = writer.expansion();
    }
    ClassSizes<std::uint32_t> sizes() const { return {counts.data(), n_classes, n_classes}; }
    std::size_t n_sums() const { return n_classes * n_classes; }
};

/// (n_classes, n_classes) numbers for a row, in memory of that size.
using Sums = std::vector<double>;

/// Rows in blocks of Registers registers, the missing ones of the last block zero.
template <int Registers, class Real>
std::vector<Sums> block_sums(const ClassModel<Real>& model, const Rows<Real>& rows) {
    constexpr std::size_t width = static_cast<std::size_t>(Registers * lanes_of<Real>);
    const std::size_t n_blocks = (rows.size() + width - 1) / width, d = model.n_features;
    const std::vector<Real> blocks = blocks_of(rows, d, width);
    std::vector<Real> half_sq_norm(n_blocks * width);
    std::vector<double> sums(n_blocks * model.n_sums() * width, 99.0);
    for (std::size_t b = 0; b < n_blocks; ++b) {
        half_sq_norms_block<Registers>(model.expansion.kernels, blocks.data() + b * d * width,
                                       half_sq_norm.data() + b * width);
    }
    class_sums_block<Registers>(model.expansion, blocks.data(), half_sq_norm.data(), sums.data(), n_blocks);
    std::vector<Sums> result(rows.size(), Sums(model.n_sums()));
    for (std::size_t r = 0; r < rows.size(); ++r) {
        const double* const of_block = sums.data() + r / width * model.n_sums() * width + r % width;
        for (std::size_t f = 0; f < model.n_sums(); ++f) result[r][f] = of_block[f * width];
    }
    return result;
}

template <class Real>
Sums row_sums(const ClassModel<Real>& model, const std::vector<Real>& row) {
    Sums sums(model.n_sums(), 99.0);
    class_sums_row(model.expansion, row.data(), half_sq_norm_row(model.expansion.kernels, row.data(), row.size()),
                   sums.data());
    return sums;
}

template <class Real>
std::vector<Sums> sparse_sums_of(const ClassModel<Real>& model, const ClassKernelSum<Real>& expansion,
                                 const Rows<Real>& rows) {
    const row_forms::SparseRows<Real> sparse(
        rows, [&](const Real* values, std::size_t n) { return half_sq_norm_row(expansion.kernels, values, n); });
    std::vector<double> sums(rows.size() * model.n_sums(), 99.0);
    std::vector<unsigned char> memory((expansion.kernels.n_panels + 1) * cache_line_bytes);
    Carver carver(memory.data());
    class_sums_sparse(expansion, sparse.values.data(), sparse.columns.data(), sparse.starts.data(), rows.size(),
                      sparse.half_sq_norm.data(), sums.data(), carver.take<Real>(0));
    std::vector<Sums> result;
    for (std::size_t r = 0; r < rows.size(); ++r) {
        const auto first = sums.begin() + static_cast<std::ptrdiff_t>(r * model.n_sums());
        result.emplace_back(first, first + static_cast<std::ptrdiff_t>(model.n_sums()));
    }
    return result;
}

template <class Real>
std::vector<Sums> sparse_sums(const ClassModel<Real>& model, const Rows<Real>& rows) {
    return sparse_sums_of(model, model.expansion, rows);
}
template <class Real>
std::vector<Sums> column_sums(const ClassModel<Real>& model, const Rows<Real>& rows) {
    return sparse_sums_of(model, model.by_columns, rows);
}

bool same(const Sums& a, const Sums& b) {
    return std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

// --- the judge ---

/// Sums and what bounds their errors: moduli of the same products, the largest of them, norms.
struct Reference {
    std::vector<long double> sums, moduli, largest;
    std::vector<long double> kernel;
    long double max_norm = 0, row_norm = 0;
};

template <class Real>
Reference reference(const ClassModel<Real>& model, const std::vector<Real>& row) {
    const std::size_t k = model.n_classes;
    Reference result{
        std::vector<long double>(k * k), std::vector<long double>(k * k), std::vector<long double>(k * k), {}};
    for (const Real x : row) result.row_norm += static_cast<long double>(x) * x;
    result.row_norm = std::sqrt(result.row_norm);
    std::size_t s = 0;
    for (std::size_t c = 0; c < k; ++c) {
        for (const std::size_t end = s + model.counts[c]; s < end; ++s) {
            long double sq_distance = 0, sq_norm = 0;
            for (std::size_t j = 0; j < row.size(); ++j) {
                const long double x = model.vectors[s * model.n_features + j], difference = x - row[j];
                sq_distance += difference * difference;
                sq_norm += x * x;
            }
            const long double kernel = std::exp(-model.half_theta * sq_distance);
            result.kernel.push_back(kernel);
            result.max_norm = std::max(result.max_norm, std::sqrt(sq_norm));
            for (std::size_t r = 0; r < k; ++r) {
                const long double a = r + 1 < k ? model.coef[r * model.n_sv + s] : model.weights[s];
                result.sums[c * k + r] += a * kernel;
                result.moduli[c * k + r] += std::fabs(a) * kernel;
                result.largest[c * k + r] = std::max(result.largest[c * k + r], std::fabs(a));
            }
        }
    }
    return result;
}

/// The bound of the norms form for one sum over a class of n support vectors.
template <class Real>
long double error_bound(const ClassModel<Real>& model, const Reference& truth, std::size_t f, long double n,
                        std::size_t path) {
    constexpr bool narrow = std::is_same_v<Real, float>;
    const long double u = std::numeric_limits<Real>::epsilon() / 2, reach = truth.max_norm + truth.row_norm;
    const long double d = 1.01L * u * static_cast<long double>(path + 5) * model.half_theta * reach * reach;
    const long double summation = (n + 2) * 0x1p-53L;
    return 1.05L * truth.moduli[f] * (std::expm1(2 * d) + 6.1L * u + summation) +
           n * truth.largest[f] * (narrow ? 0x1p-120L : 0x1p-1020L);
}
template <class Real>
long double error_bound(const ClassModel<Real>& model, const Reference& truth, std::size_t f, long double n) {
    return error_bound(model, truth, f, n, inner_product_path(model.n_features));
}

/// Within the bound; the pairs' values by LIBSVM's own loop; exactly nothing from an empty class.
template <class Real>
void judge(const ClassModel<Real>& model, const Reference& truth, const Sums& sums, const std::string& what,
           long double& worst, bool columns = false) {
    const std::size_t k = model.n_classes, path = inner_product_path(model.n_features);
    for (std::size_t f = 0; f < k * k; ++f) {
        const std::uint32_t n = model.counts[f / k];
        const long double bound = error_bound(model, truth, f, n, columns ? std::max(path, model.n_features) : path);
        const long double error = std::fabs(sums[f] - truth.sums[f]);
        if (bound > 0) worst = std::max(worst, error / bound);
        if (error <= bound && (n > 0 || sums[f] == 0.0)) continue;
        expect(false, what + ", " + std::to_string(model.n_features) + " features, class " + std::to_string(f / k) +
                          " of " + std::to_string(k) + " with " + std::to_string(n) + ", sum " + std::to_string(f % k) +
                          ": error " + check::show(error) + " exceeds " + check::show(bound));
        return;
    }
}

// --- random models ---

/// Every seventh support vector is a duplicate of one before, of this class or another; some coefficients are zero.
template <class Real>
ClassModel<Real> random_model(Generator& generator, const Counts& counts, std::size_t n_features, double norm,
                              double coef_exponent = 0) {
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform(-1.0, 1.0), theta(0.5, 2.0);
    const std::size_t n_sv = total(counts);
    const std::vector<double> vectors = random_vectors<Real>(generator, n_sv, n_features, norm, 0.2);
    std::vector<double> coef;
    for (std::size_t i = 0; i < n_sv * (counts.size() - 1); ++i) {
        const double a = normal(generator) * std::pow(10.0, coef_exponent * uniform(generator));
        coef.push_back(generator() % 4 == 0 ? 0.0 : a);
    }
    return ClassModel<Real>(counts, vectors, coef, n_features, theta(generator), generator() % 64);
}

/// All ways to evaluate the rows: within the bound, and bitwise the same however rows are grouped.
template <class Real>
void check_rows(const ClassModel<Real>& model, const Rows<Real>& rows, std::size_t n_judged, long double& worst) {
    const std::vector<Sums> block = block_sums<3>(model, rows), sparse = sparse_sums(model, rows);
    const std::vector<Sums> one = block_sums<1>(model, rows), two = block_sums<2>(model, rows);
    for (std::size_t r = 0; r < rows.size(); ++r) {
        EXPECT(same(block[r], one[r]) && same(block[r], two[r]), "a block's width changes a result");
    }
    const std::string name = std::is_same_v<Real, float> ? "float" : "double";
    for (std::size_t n = 0; n < n_judged && n < rows.size(); ++n) {
        const std::size_t r = n % 2 == 0 ? n : rows.size() - n;
        const Reference truth = reference(model, rows[r]);
        judge(model, truth, block[r], "block of " + name, worst);
        judge(model, truth, row_sums(model, rows[r]), "row of " + name, worst);
        judge(model, truth, sparse[r], "sparse row of " + name, worst);
        EXPECT(same(sparse[r], sparse_sums(model, Rows<Real>{rows[r]})[0]), "a sparse row depends on its neighbours");
        judge(model, truth, column_sums(model, {rows[r]})[0], "columns of " + name, worst, true);
    }
}

/// Class sizes around the width of panels and tiles, for every number of classes: all the same, one of them empty or of
/// one vector at every place, or mixed.
std::vector<Counts> class_sizes(Generator& generator, std::size_t n_classes) {
    constexpr std::uint32_t sizes[] = {0, 1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33};
    std::vector<Counts> all;
    for (const std::uint32_t n : sizes) all.push_back(Counts(n_classes, n));
    for (std::size_t c = 0; c < n_classes; ++c) {
        for (const std::uint32_t n : {0u, 1u}) {
            all.push_back(Counts(n_classes, 16));
            all.back()[c] = n;
        }
    }
    for (int repetition = 0; repetition < 4; ++repetition) {
        Counts mixed(n_classes);
        for (std::uint32_t& n : mixed) n = sizes[generator() % 14];
        all.push_back(mixed);
    }
    return all;
}

template <class Real>
void check_classes() {
    Generator generator(1);
    long double worst = 0;
    for (std::size_t n_classes = 1; n_classes <= 12; ++n_classes) {
        for (const Counts& counts : class_sizes(generator, n_classes)) {
            const ClassModel<Real> model = random_model<Real>(generator, counts, 1 + generator() % 6, 1.0);
            check_rows(model, random_rows(generator, model, 1 + generator() % 50, 1.0), 2, worst);
        }
    }
    std::cout << "    worst error / bound " << worst << '\n';
}

template <class Real>
void check_features() {
    Generator generator(2);
    long double worst = 0;
    std::vector<std::size_t> features = {0, 64, 65, 123, 257, 513, 1100};
    for (std::size_t d = 1; d <= 40; ++d) features.push_back(d);
    for (const std::size_t d : features) {
        const ClassModel<Real> model = random_model<Real>(generator, {20, 3, 0, 40, 17}, d, 1.0);
        const std::size_t n_rows = 1 + generator() % (5 * static_cast<std::size_t>(lanes));
        check_rows(model, random_rows(generator, model, n_rows, 1.0), 3, worst);
    }
    std::cout << "    worst error / bound " << worst << '\n';
}

/// Classes across many chunks of panels, chunks across many classes, more sparse rows than pass at once.
template <class Real>
void check_isolation() {
    Generator generator(5);
    const ClassModel<Real> model = random_model<Real>(generator, {20, 1, 33}, 20, 1.0);
    const Rows<Real> calm = random_rows(generator, model, 4 * static_cast<std::size_t>(lanes), 1.0);
    const std::vector<Sums> block = block_sums<3>(model, calm), sparse = sparse_sums(model, calm);
    const Real large = std::numeric_limits<Real>::max();
    const Real sizes[] = {std::sqrt(large), std::sqrt(large) * 3, large / 2, large};
    const Sums nothing(model.n_sums(), 0.0);
    for (std::size_t r = 0; r < calm.size(); ++r) {
        Rows<Real> rows = calm;
        for (std::size_t j = 0; j < rows[r].size(); ++j) {
            rows[r][j] = sizes[r % 4] * static_cast<Real>(j % 3 == 0 ? 1 : j % 3 == 1 ? -1 : 0.5);
        }
        const std::vector<Sums> new_block = block_sums<3>(model, rows), new_sparse = sparse_sums(model, rows);
        for (std::size_t i = 0; i < rows.size(); ++i) {
            EXPECT(same(i == r ? nothing : block[i], new_block[i]), "a huge row of a block");
            EXPECT(same(i == r ? nothing : sparse[i], new_sparse[i]), "a huge sparse row");
        }
        EXPECT(same(nothing, row_sums(model, rows[r])), "a huge row");
    }
}

// --- the pairs of one class ---

/// Lists in memory of exactly the promised size, full of NaN.
struct WinnerLists {
    std::vector<char> memory;
    bool is_usable;
    WinnerKernelSum sums{};
    std::vector<std::uint32_t> lane_of;

    explicit WinnerLists(const ClassModel<float>& model) {
        const PairCoefficients pairs{model.coef.data(), model.counts.data(), model.n_classes, model.n_sv};
        Carver counter(nullptr);
        const WinnerMemory counted(pairs, counter);
        memory.assign(counter.bytes_anywhere(), '\xff');
        Carver carver(memory.data());
        const WinnerMemory pieces(pairs, carver);
        is_usable = pieces.is_usable;
        EXPECT(is_usable == counted.is_usable, "counting and laying out disagree");
        EXPECT(carver.bytes_anywhere() - 64 <= memory.size(), "the lists take more than was promised");
        if (!is_usable) return;
        sums = fill_winner(pairs, model.expansion.kernels, pieces);
        lane_of.assign(pieces.lane_of, pieces.lane_of + model.n_sv);
    }
};

/// The coefficients of a class in a pair get one sign, moduli between 2^-50 and 2^50.
ClassModel<float> with_uniform_signs(const ClassModel<float>& model) {
    std::vector<double> coef = model.coef;
    std::size_t s = 0;
    for (std::size_t c = 0; c < model.n_classes; ++c) {
        for (const std::size_t end = s + model.counts[c]; s < end; ++s) {
            for (std::size_t r = 0; r + 1 < model.n_classes; ++r) {
                double& a = coef[r * model.n_sv + s];
                if (a != 0) a = std::min(std::max(std::fabs(a), 0x1p-50), 0x1p50) * ((c + r) % 2 == 0 ? 1 : -1);
            }
        }
    }
    return ClassModel<float>(model.counts, model.vectors, coef, model.n_features, model.half_theta, 3);
}

/// (own, others) of every class w, (n_classes, 2 n_classes) numbers for each row.
template <int Registers>
std::vector<Sums> winner_sums(const ClassModel<float>& model, const WinnerLists& lists, const Rows<float>& rows) {
    constexpr std::size_t width = static_cast<std::size_t>(Registers * lanes);
    const std::size_t d = model.n_features, k = model.n_classes, n_blocks = (rows.size() + width - 1) / width;
    const std::vector<float> blocks = blocks_of(rows, d, width);
    std::vector<Sums> result(rows.size(), Sums(2 * k * k));
    for (std::size_t b = 0; b < n_blocks; ++b) {
        std::vector<float> half_sq_norm(width), partial(k * width);
        half_sq_norms_block<Registers>(model.expansion.kernels, blocks.data() + b * d * width, half_sq_norm.data());
        for (std::size_t w = 0; w < k; ++w) {
            std::vector<double> own(k * width, 99.0), others(k * width, 99.0);
            winner_sums_block<Registers>(lists.sums, w, blocks.data() + b * d * width, half_sq_norm.data(),
                                         partial.data(), own.data(), others.data());
            for (std::size_t r = b * width; r < std::min(rows.size(), (b + 1) * width); ++r) {
                for (std::size_t c = 0; c < k; ++c) {
                    result[r][2 * (w * k + c)] = own[c * width + r % width];
                    result[r][2 * (w * k + c) + 1] = others[c * width + r % width];
                }
            }
        }
    }
    return result;
}

/// Every sum within the bound of the engine and listed_path roundings more, and the moduli of its pair.
void judge_winner(const ClassModel<float>& model, const Reference& truth, const Sums& sums, long double& worst) {
    const std::size_t k = model.n_classes;
    for (std::size_t w = 0; w < k; ++w) {
        for (std::size_t c = 0; c < k; ++c) {
            if (c == w) continue;
            const std::size_t mine[] = {w * k + (c < w ? c : c - 1), c * k + (w < c ? w : w - 1)};
            const double found[] = {sums[2 * (w * k + (c < w ? c : c - 1))], sums[2 * (w * k + c) + 1]};
            for (int side = 0; side < 2; ++side) {
                const std::size_t f = mine[side];
                const long double bound = error_bound(model, truth, f, model.counts[f / k]) +
                                          1.01L * listed_path * 0x1p-24L * truth.moduli[f] +
                                          model.counts[f / k] * 0x1p-58L * truth.largest[f];
                const long double error = std::fabs(found[side] - truth.sums[f]);
                if (bound > 0) worst = std::max(worst, error / bound);
                EXPECT(error <= bound, "a sum of the pair (" + std::to_string(w) + ", " + std::to_string(c) +
                                           "), side " + std::to_string(side) + ", is off by " + check::show(error) +
                                           ", bound " + check::show(bound));
                EXPECT(std::fabs(std::fabs(found[side]) - truth.moduli[f]) <= bound, "sums are no moduli");
            }
        }
    }
}

}  // namespace

TEST(every_number_of_classes_and_their_sizes) {
    check_classes<float>();
    check_classes<double>();
}
TEST(every_number_of_features) {
    check_features<float>();
    check_features<double>();
}
TEST(a_row_out_of_reach_has_no_sums_and_no_influence) {
    check_isolation<float>();
    check_isolation<double>();
}
TEST(largest_modulus_of_a_column) {
    const double coef[] = {1, -2, 0.5, 7, -3, 9};
    CHECK_EQ(largest_modulus(coef, 3, 2), 3.0);
    CHECK_EQ(largest_modulus(coef + 1, 3, 2), 9.0);
    CHECK_EQ(largest_modulus(coef, 0, 2), 0.0);
}

TEST(the_pairs_of_one_class) {
    Generator generator(7);
    long double worst = 0;
    for (std::size_t n_classes = 2; n_classes <= 9; ++n_classes) {
        for (const Counts& counts : class_sizes(generator, n_classes)) {
            const std::size_t d = n_classes == 3 ? 65 : 1 + generator() % 6;
            const ClassModel<float> model = with_uniform_signs(random_model<float>(generator, counts, d, 1.0, 6));
            const WinnerLists lists(model);
            EXPECT(lists.is_usable, "signs are uniform");
            const Rows<float> rows = random_rows(generator, model, 1 + generator() % 50, 1.0);
            const std::vector<Sums> three = winner_sums<3>(model, lists, rows),
                                    one = winner_sums<1>(model, lists, rows);
            for (std::size_t r = 0; r < rows.size(); ++r) {
                EXPECT(same(three[r], one[r]), "a block's width changes a result");
                if (r % 7 == 0) judge_winner(model, reference(model, rows[r]), three[r], worst);
            }
        }
    }
    std::cout << "    worst error / bound " << worst << '\n';
}

TEST(pairs_that_float32_cannot_add_up_have_no_lists) {
    Generator generator(8);
    const ClassModel<float> model = with_uniform_signs(random_model<float>(generator, {9, 9, 9}, 3, 1.0));
    EXPECT(WinnerLists(model).is_usable, "signs are uniform");
    std::size_t n_refused = 0;
    for (std::size_t k = 0; k < model.coef.size(); ++k) {
        if (model.coef[k] == 0) continue;
        for (const double factor : {-1.0, 0x1p-120, 0x1p120}) {
            std::vector<double> coef = model.coef;
            coef[k] *= factor;
            const ClassModel<float> changed(model.counts, model.vectors, coef, 3, model.half_theta);
            EXPECT(!WinnerLists(changed).is_usable, "a coefficient times " + check::show(factor) + " is listed");
            ++n_refused;
        }
    }
    EXPECT(n_refused > 60, "too few coefficients");
}

TEST(the_network_presumes_the_best_score) {
    Generator generator(9);
    std::normal_distribution<double> normal;
    std::size_t n_judged = 0;
    for (const std::size_t n_landmarks : {0u, 1u, 7u, 8u, 9u, 70u}) {
        for (const std::size_t n_classes : {2u, 3u, 8u, 17u}) {
            const ClassModel<float> model =
                with_uniform_signs(random_model<float>(generator, Counts(n_classes, 11), 5, 1.0));
            const WinnerLists lists(model);
            Carver counter(nullptr);
            const PresumptionMemory counted(n_classes, 5, n_landmarks, counter);
            std::vector<char> memory(counter.bytes_anywhere(), '\xff');
            Carver carver(memory.data());
            PresumptionWriter writer(model.expansion.kernels, PresumptionMemory(n_classes, 5, n_landmarks, carver),
                                     n_classes);
            std::vector<double> weights((6 + n_landmarks) * n_classes);
            for (double& weight : weights) weight = static_cast<double>(static_cast<float>(normal(generator)));
            std::vector<std::size_t> landmarks;
            for (std::size_t c = 0; c < n_classes; ++c) {
                writer.set_constant(c, weights[c]);
                for (std::size_t j = 0; j < 5; ++j) writer.set_weight(c, j, weights[(1 + j) * n_classes + c]);
            }
            for (std::size_t m = 0; m < n_landmarks; ++m) {
                landmarks.push_back(generator() % model.n_sv);
                const double* const first = weights.data() + (6 + m) * n_classes;
                const std::vector<float> of_landmark(first, first + n_classes);
                writer.add_landmark(lists.lane_of[landmarks[m]], of_landmark.data());
            }
            const Presumption presumption = writer.presumption();
            const Rows<float> rows = random_rows(generator, model, 2 * lanes, 1.0);
            const std::vector<float> block = blocks_of(rows, 5, 2 * lanes);
            std::vector<float> half_sq_norm(2 * lanes), scores(tiles_for(n_classes) * tile_rows * 2 * lanes);
            std::vector<std::uint32_t> presumed(2 * lanes);
            half_sq_norms_block<2>(model.expansion.kernels, block.data(), half_sq_norm.data());
            presumed_classes_block<2>(model.expansion.kernels, presumption, block.data(), half_sq_norm.data(),
                                      scores.data(), presumed.data());
            for (std::size_t r = 0; r < rows.size(); ++r) {
                const Reference truth = reference(model, rows[r]);
                std::vector<double> score(weights.begin(), weights.begin() + static_cast<std::ptrdiff_t>(n_classes));
                for (std::size_t c = 0; c < n_classes; ++c) {
                    for (std::size_t j = 0; j < 5; ++j) {
                        score[c] += weights[(1 + j) * n_classes + c] * static_cast<double>(rows[r][j]);
                    }
                    for (std::size_t m = 0; m < n_landmarks; ++m) {
                        score[c] += weights[(6 + m) * n_classes + c] * static_cast<double>(truth.kernel[landmarks[m]]);
                    }
                }
                const double best = *std::max_element(score.begin(), score.end());
                EXPECT(score[presumed[r]] >= best - 1e-3, "another class has a better score");
                ++n_judged;
            }
        }
    }
    EXPECT(n_judged > 100, "too few rows");
}
