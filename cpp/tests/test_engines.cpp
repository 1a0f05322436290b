#include "parts.hpp"

// Compares the exact engines (one function, and all one-vs-one functions) with LIBSVM's double loop in long double,
// within the certificate's rounding bound. Compiled once per target.

namespace engines {

using namespace engine_models;

namespace {

/// Rows in blocks of Registers registers; the last block is padded with zeros.
template <int Registers, class Engine, class Real = typename Engine::Real>
std::vector<Sums> block_sums(const EngineModel<Engine>& model, const Rows<Real>& rows) {
    constexpr std::size_t width = static_cast<std::size_t>(Registers * lanes_of<Real>);
    const std::size_t n_blocks = (rows.size() + width - 1) / width, d = model.n_features;
    const std::vector<Real> blocks = blocks_of(rows, d, width);
    std::vector<Real> half_sq_norm(n_blocks * width);
    std::vector<double> sums(n_blocks * model.n_sums * width, 99.0);
    for (std::size_t b = 0; b < n_blocks; ++b) {
        const Real* const block = blocks.data() + b * d * width;
        half_sq_norms_block<Registers>(model.kernels(), block, half_sq_norm.data() + b * width);
        sums_of<Engine>(model.by_panels)
            .template block<Registers>(block, half_sq_norm.data() + b * width, sums.data() + b * model.n_sums * width);
    }
    std::vector<Sums> result(rows.size(), Sums(model.n_sums));
    for (std::size_t r = 0; r < rows.size(); ++r) {
        for (std::size_t f = 0; f < model.n_sums; ++f) {
            result[r][f] = sums[(r / width * model.n_sums + f) * width + r % width];
        }
    }
    return result;
}

template <class Engine, class Real = typename Engine::Real>
Sums row_sums(const EngineModel<Engine>& model, const std::vector<Real>& row) {
    Sums sums(model.n_sums, 99.0);
    const Real half_sq_norm = half_sq_norm_row(model.kernels(), row.data(), row.size());
    sums_of<Engine>(model.by_panels).row(row.data(), half_sq_norm, sums.data());
    return sums;
}

/// The sums for rows in compressed form, which stores only nonzeros.
template <class Engine, class Real = typename Engine::Real>
std::vector<Sums> sparse_sums(const EngineModel<Engine>& model, const KernelSums<typename Engine::Real>& expansion,
                              const Rows<Real>& rows) {
    const KernelVectors<Real>& kernels = expansion.vectors;
    std::vector<Real> values, half_sq_norm;
    std::vector<std::int32_t> columns;
    std::vector<std::size_t> starts = {0};
    for (const std::vector<Real>& row : rows) {
        for (std::size_t j = 0; j < row.size(); ++j) {
            if (row[j] == Real{0}) continue;
            values.push_back(row[j]);
            columns.push_back(static_cast<std::int32_t>(j));
        }
        const std::size_t start = starts.back();
        half_sq_norm.push_back(half_sq_norm_row(kernels, values.data() + start, values.size() - start));
        starts.push_back(values.size());
    }
    std::vector<double> sums(rows.size() * model.n_sums, 99.0);
    std::vector<unsigned char> memory((kernels.n_panels + 1) * cache_line_bytes);
    Arena arena(memory.data());
    sums_of<Engine>(expansion, arena.take<Real>(0))
        .sparse(values.data(), columns.data(), starts.data(), rows.size(), half_sq_norm.data(), sums.data());
    std::vector<Sums> result;
    for (auto first = sums.begin(); first != sums.end(); first += static_cast<std::ptrdiff_t>(model.n_sums)) {
        result.emplace_back(first, first + static_cast<std::ptrdiff_t>(model.n_sums));
    }
    return result;
}

std::string beyond(bool is_float, std::size_t n_features, const Counts& counts, std::size_t f, std::uint32_t n,
                   long double error, long double bound) {
    return (is_float ? " of float, " : " of double, ") + std::to_string(n_features) + " features, " +
           std::to_string(counts.size()) + " classes, sum " + std::to_string(f) + " of " + std::to_string(n) +
           " vectors: error " + check::show(error) + " exceeds " + check::show(bound);
}

/// Checks every sum against its bound; an empty class must give exactly 0.
template <class Engine>
void judge(const EngineModel<Engine>& model, const Reference& truth, const Sums& sums, const char* what,
           std::size_t path) {
    for (std::size_t f = 0; f < model.n_sums; ++f) {
        const long double bound = error_bound(model, truth, f, path), error = std::fabs(sums[f] - truth.sums[f]);
        const std::uint32_t n = model.counts[f / (model.n_functions + 1)];
        EXPECT(error <= bound && (n > 0 || sums[f] == 0.0),
               what + beyond(sizeof(typename Engine::Real) == 4, model.n_features, model.counts, f, n, error, bound));
    }
}

/// Checks all ways to evaluate rows: within the bound, and bit-identical however rows are grouped.
template <class Engine>
void check_rows(const EngineModel<Engine>& model, Random& random, std::size_t n_rows, std::size_t n_judged) {
    using Real = typename Engine::Real;
    const Rows<Real> rows = random_rows(random, model, n_rows);
    const std::vector<Sums> block = block_sums<3>(model, rows), one = block_sums<1>(model, rows),
                            two = block_sums<2>(model, rows), sparse = sparse_sums(model, model.by_panels, rows),
                            columns = sparse_sums(model, model.by_columns, rows);
    const auto sparse_alone = [&](std::size_t r) {
        return sparse_sums(model, model.by_panels, Rows<Real>{rows[r]})[0];
    };
    const std::size_t path = inner_product_depth(model.n_features);
    const std::size_t column_path = std::max(path, model.by_columns.vectors.columns.max_values);
    for (std::size_t r = 0; r < n_rows; ++r) {
        EXPECT(same(block[r], one[r]) && same(block[r], two[r]), "a block's width changes a result");
        if ((r + 1) % sparse_block_rows > 1) continue;  // only the first and last row of each block
        EXPECT(same(sparse[r], sparse_alone(r)), "a sparse row depends on its block");
    }
    for (std::size_t k = 0; k < n_judged && k < n_rows; ++k) {
        const std::size_t r = k % 2 == 0 ? k : n_rows - k;
        const Reference truth = reference(model, rows[r]);
        judge(model, truth, block[r], "block", path);
        judge(model, truth, row_sums(model, rows[r]), "row", path);
        judge(model, truth, sparse[r], "sparse row", path);
        EXPECT(same(sparse[r], sparse_alone(r)), "a sparse row depends on its neighbours");
        judge(model, truth, columns[r], "columns", column_path);
    }
}

template <class Engine>
void check_features(const std::vector<Counts>& all_counts) {
    Random random(20140312);
    std::vector<std::size_t> features = {0, 64, 65, 123, 257, 513, 530, 1100};
    for (std::size_t d = 1; d <= 40; ++d) features.push_back(d);
    for (const std::size_t d : features) {
        for (std::size_t k = 0; k < all_counts.size(); ++k) {
            if (all_counts.size() > 1 && (k + d) % 3 != 0) continue;  // each size with a third of the features
            const Counts& counts = all_counts[k];
            check_rows(random_model<Engine>(random, counts, d), random, 1 + random() % (5 * std::size_t{lanes}), 3);
        }
    }
    for (const std::size_t d : {1u, 5u, 16u, 17u, 33u, 123u, 257u}) {  // more sparse rows than are processed at once
        Counts counts = all_counts.back();
        counts.back() = 1000;
        check_rows(random_model<Engine>(random, counts, d), random, 2 * sparse_block_rows + 3, 5);
    }
}

/// Rows whose squared norm overflows or nearly overflows have no sums and do not affect other rows.
template <class Engine>
void check_isolation(const Counts& counts) {
    using Real = typename Engine::Real;
    Random random(5);
    const EngineModel<Engine> model = random_model<Engine>(random, counts, 20);
    const Rows<Real> calm = random_rows(random, model, 7 * std::size_t{lanes});
    const std::vector<Sums> block = block_sums<3>(model, calm), sparse = sparse_sums(model, model.by_panels, calm);
    const Real large = std::numeric_limits<Real>::max();
    const Real sizes[] = {std::sqrt(large), std::sqrt(large) * 3, large / 2, large};
    const Sums nothing(model.n_sums, 0.0);
    for (std::size_t r = 0; r < calm.size(); ++r) {
        Rows<Real> rows = calm;
        for (std::size_t j = 0; j < rows[r].size(); ++j) {
            rows[r][j] = sizes[r % 4] * static_cast<Real>(j % 3 == 0 ? 1 : j % 3 == 1 ? -1 : 0.5);
        }
        const std::vector<Sums> huge = block_sums<3>(model, rows),
                                huge_sparse = sparse_sums(model, model.by_panels, rows);
        for (std::size_t i = 0; i < rows.size(); ++i) {
            EXPECT(same(i == r ? nothing : block[i], huge[i]), "a huge row of a block");
            EXPECT(same(i == r ? nothing : sparse[i], huge_sparse[i]), "a huge sparse row");
        }
        EXPECT(same(nothing, row_sums(model, rows[r])), "a huge row");
    }
}

/// Support vectors whose squared norm overflows are out of reach of every row.
template <class Real>
void check_huge_vectors() {
    const double huge = std::sqrt(static_cast<double>(std::numeric_limits<Real>::max())) * 2;
    const EngineModel<OneFunction<Real>> model({3}, {1, 2, huge, -huge, 0, huge}, {1, 1e3, -1e3}, 2, 1.0);
    for (const Sums& sums : {row_sums(model, {Real{1}, Real{2}}), block_sums<1>(model, {{Real{1}, Real{2}}})[0]}) {
        EXPECT(std::fabs(sums[0] - 1) < 1e-30 && std::fabs(sums[1] - 1) < 1e-30, "a vector out of reach counts");
    }
}

}  // namespace

TEST(every_number_of_features_and_vectors) {
    std::vector<Counts> counts;
    for (const std::uint32_t n : {0u, 1u, 7u, 8u, 9u, 15u, 16u, 17u, 100u}) counts.push_back({n});
    check_features<OneFunction<float>>(counts);
    check_features<OneFunction<double>>(counts);
    check_features<AllPairs<float>>({{20, 3, 0, 40, 17}});
    check_features<AllPairs<double>>({{20, 3, 0, 40, 17}});
}

TEST(every_number_of_classes_and_their_sizes) {
    Random random(1);
    for (std::size_t n_classes = 1; n_classes <= 12; ++n_classes) {
        for (const Counts& counts : class_sizes(random, n_classes)) {
            const std::size_t d = 1 + random() % 6, n_rows = 1 + random() % 50;
            check_rows(random_model<AllPairs<float>>(random, counts, d), random, n_rows, 2);
            check_rows(random_model<AllPairs<double>>(random, counts, d), random, n_rows, 2);
        }
    }
}

TEST(what_is_out_of_reach_changes_nothing) {
    check_isolation<OneFunction<float>>({50});
    check_isolation<OneFunction<double>>({50});
    check_isolation<AllPairs<float>>({20, 1, 33});
    check_isolation<AllPairs<double>>({20, 1, 33});
    check_huge_vectors<float>();
    check_huge_vectors<double>();
}

TEST(inner_product_path_covers_every_chunk) {
    const std::size_t paths[][2] = {{0, 0}, {1, 2}, {16, 17}, {123, 24}, {512, 48}, {780, 57}};
    for (const auto& [d, path] : paths) CHECK_EQ(inner_product_depth(d), path);
    for (std::size_t d = 1; d < 2000; ++d)
        CHECK(inner_product_depth(d) <= std::min<std::size_t>(32, d) + (d + 31) / 32);
}

TEST(largest_modulus_of_a_column) {
    const double coef[] = {1, -2, 0.5, 7, -3, 9};
    CHECK_EQ(largest_modulus(coef, 3, 2), 3.0);
    CHECK_EQ(largest_modulus(coef + 1, 3, 2), 9.0);
    CHECK_EQ(largest_modulus(coef, 0, 2), 0.0);
}

}  // namespace engines
