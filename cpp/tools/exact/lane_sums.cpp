// Compiled once per target, with the target's flags and its name in APPROXSVM_LANES. No code may be shared with other
// targets, so everything is in an unnamed namespace and does not use the standard library.
#include "lane_sums.hpp"

#define APPROXSVM_JOIN_OF(a, b) a##b
#define APPROXSVM_JOIN(a, b) APPROXSVM_JOIN_OF(a, b)

namespace approxsvm::tools {
namespace {

#if defined(__AVX512F__)
constexpr std::size_t width = 8;
#elif defined(__AVX2__)
constexpr std::size_t width = 4;
#else
constexpr std::size_t width = 2;
#endif
typedef double Vector __attribute__((vector_size(width * sizeof(double))));
// A vector that may begin at any index in an array of doubles.
typedef double StoredVector __attribute__((vector_size(width * sizeof(double)), aligned(8), may_alias));

// V vectors of lanes; V is a constant so that the compiler keeps them in registers.
template <std::size_t V>
struct Lanes {
    Vector vector[V] = {};

    void add_square(const double* z) {
        for (std::size_t v = 0; v < V; ++v) vector[v] += at(z, v) * at(z, v);
    }
    void add_difference(const double* z, double x) {
        for (std::size_t v = 0; v < V; ++v) {
            const Vector difference = at(z, v) - x;
            vector[v] += difference * difference;
        }
    }
    void add_product(const double* z, double x) {
        for (std::size_t v = 0; v < V; ++v) vector[v] += at(z, v) * x;
    }
    void add(double x) {
        for (std::size_t v = 0; v < V; ++v) vector[v] += x;
    }
    void store(double* out) const {
        for (std::size_t v = 0; v < V; ++v) *reinterpret_cast<StoredVector*>(out + v * width) = vector[v];
    }
    static Vector at(const double* z, std::size_t v) { return *reinterpret_cast<const StoredVector*>(z + v * width); }
};

// A feature that only one of the row and the support vector has also adds to the distance.
template <std::size_t V>
struct SqDistance {
    static void run(const LaneBlock& block, const LaneVectors& x, std::size_t i, double* out) {
        const std::int32_t *column = block.columns, *const last_column = column + block.n_columns;
        const double* z = block.values;
        Lanes<V> sum;
        for (std::int64_t k = x.starts[i]; k < x.starts[i + 1]; ++k) {
            const std::int32_t next = x.columns[k];
            for (; column != last_column && *column < next; ++column, z += V * width) sum.add_square(z);
            if (column != last_column && *column == next) {
                sum.add_difference(z, x.values[k]);
                ++column, z += V * width;
            } else {
                sum.add(x.values[k] * x.values[k]);
            }
        }
        for (; column != last_column; ++column, z += V * width) sum.add_square(z);
        sum.store(out);
    }
};

template <std::size_t V>
struct DotProduct {
    static void run(const LaneBlock& block, const LaneVectors& x, std::size_t i, double* out) {
        const std::int32_t *column = block.columns, *const last_column = column + block.n_columns;
        Lanes<V> sum;
        for (std::int64_t k = x.starts[i]; k < x.starts[i + 1]; ++k) {
            while (column != last_column && *column < x.columns[k]) ++column;
            if (column == last_column) break;
            if (*column != x.columns[k]) continue;
            sum.add_product(block.values + static_cast<std::size_t>(column - block.columns) * V * width, x.values[k]);
        }
        sum.store(out);
    }
};

template <std::size_t V>
struct Terms {
    static void run(const LaneTerms& terms, std::size_t n, double* sums) {
        for (std::size_t i = 0; i < n; ++i) {
            const double* kernel = terms.kernels + i * V * width;
            for (std::size_t m = 0; m < terms.n_sums_each; ++m) {
                const double weight = terms.weights[i * terms.n_sums_each + m];
                double* sum = sums + terms.places[m] * V * width;
                for (std::size_t v = 0; v < V; ++v) {
                    *reinterpret_cast<StoredVector*>(sum + v * width) += Lanes<V>::at(kernel, v) * weight;
                }
            }
        }
    }
};

// Calls Function<V>::run for the constant V that equals n_vectors.
template <template <std::size_t> class Function, std::size_t V = max_lane_vectors, class... Arguments>
void run(std::size_t n_vectors, const Arguments&... arguments) {
    if (n_vectors == V) return Function<V>::run(arguments...);
    if constexpr (V > 1) run<Function, V - 1>(n_vectors, arguments...);
}

template <template <std::size_t> class Function>
void for_vectors(const LaneBlock& block, const LaneVectors& x, std::size_t first, std::size_t last, double* out) {
    for (std::size_t i = first; i < last; ++i) {
        run<Function>(block.n_vectors, block, x, i, out + (i - first) * block.n_vectors * width);
    }
}

void add_terms(const LaneTerms& terms, std::size_t n, std::size_t n_vectors, double* sums) {
    run<Terms>(n_vectors, terms, n, sums);
}

}  // namespace

extern const LaneSums APPROXSVM_JOIN(lane_sums_, APPROXSVM_LANES);
const LaneSums APPROXSVM_JOIN(lane_sums_, APPROXSVM_LANES) = {width, for_vectors<SqDistance>, for_vectors<DotProduct>,
                                                              add_terms};

}  // namespace approxsvm::tools
