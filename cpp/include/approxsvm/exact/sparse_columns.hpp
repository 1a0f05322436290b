// Support vectors with few nonzeros, stored by feature: each feature lists the support vectors in which it is nonzero,
// with its values there. Computing the inner products of a row with all support vectors takes one multiply-add per
// shared nonzero, and the memory is proportional to the number of nonzeros. The most frequent features are stored with
// all values, including zeros, so that whole registers are used.
#ifndef APPROXSVM_EXACT_SPARSE_COLUMNS_HPP
#define APPROXSVM_EXACT_SPARSE_COLUMNS_HPP

#include "../arena.hpp"
#include "../simd/simd.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

template <class Real>
struct SparseColumns {
    std::size_t n_lanes;          // number of lanes, one per support vector; 0 if there are no columns
    std::size_t max_values;       // maximum number of values per support vector
    const std::uint32_t* bounds;  // (n_features + 1,): feature j has entries bounds[j] ... bounds[j + 1] - 1
    const std::uint32_t* lanes;   // lane of each entry
    const Real* values;           // value of each entry
    // 1-based position of each feature among the features stored with all values; 0 for other features, (n_features,)
    const std::uint8_t* frequent;
    const Real* of_frequent;  // all values of frequent features, (number of frequent features, n_lanes)
};

// Returns whether an engine stores support vectors by column, which is worthwhile for few nonzeros among many features.
// Above a certain fraction of nonzeros, panels need less time and little more memory.
constexpr std::size_t columns_per_nonzero = 32;
constexpr bool are_few(std::uint64_t n_values, std::uint64_t n_sv, std::uint64_t n_features) {
    return n_values < n_sv * (n_features / columns_per_nonzero) && n_values < 0xffffffffu;
}

// The coordinates of a support vector: all of them, or the nonzero ones with their features.
struct Coordinates {
    const double* values;
    const std::uint32_t* features;  // feature indices in ascending order; null for all features in order
    std::size_t n;

    std::size_t feature(std::size_t k) const { return features ? features[k] : k; }
};

// Maximum number of features stored with all values, and the reciprocal of the minimum fraction of nonzeros in such a
// feature. From about this fraction on, processing a register of 8 or 16 lanes, including zeros, is cheaper than
// processing the nonzeros one by one.
constexpr std::size_t max_frequent = 64;
constexpr std::size_t frequent_share = 12;

// The maximum number of features stored with all values, given a total of n_values nonzeros; each such feature has at
// least the minimum fraction.
constexpr std::size_t most_frequent(std::size_t n_lanes, std::size_t n_values) {
    const std::size_t most = n_lanes > 0 ? n_values / ((n_lanes + frequent_share - 1) / frequent_share) : 0;
    return most < max_frequent ? most : max_frequent;
}

template <class Real>
struct SparseColumnsMemory {
    std::uint32_t *bounds, *lanes;
    Real* values;
    std::uint8_t* frequent;
    Real* of_frequent;

    SparseColumnsMemory(std::size_t n_lanes, std::size_t n_features, std::size_t n_values, Arena& arena)
        : bounds(arena.take<std::uint32_t>(n_features + 1)),
          lanes(arena.take<std::uint32_t>(n_values)),
          values(arena.take<Real>(n_values)),
          frequent(arena.take<std::uint8_t>(n_features)),
          of_frequent(arena.take<Real>(most_frequent(n_lanes, n_values), n_lanes)) {}
};

// Fills memory for n_values values: first all values are counted, then the support vectors are added lane by lane.
template <class Real>
class SparseColumnsWriter {
  public:
    SparseColumnsWriter(const SparseColumnsMemory<Real>& memory, std::size_t n_lanes, std::size_t n_features)
        : memory_(memory), n_lanes_(n_lanes), n_features_(n_features) {
        for (std::size_t j = 0; n_lanes > 0 && j <= n_features; ++j) memory_.bounds[j] = 0;
    }

    // Counts a value of feature j.
    void count(std::size_t j) { ++memory_.bounds[j + 1]; }

    APPROXSVM_COLD void finish_counting() {
        std::size_t least = (n_lanes_ + frequent_share - 1) / frequent_share;
        while (n_at_least(least) > max_frequent) least += least / 8 + 1;
        std::uint32_t n_frequent = 0, next = 0;
        for (std::size_t j = 0; j < n_features_; ++j) {
            const std::uint32_t n = memory_.bounds[j + 1];
            const bool is_frequent = n > 0 && n >= least;
            memory_.frequent[j] = static_cast<std::uint8_t>(is_frequent ? ++n_frequent : 0);
            memory_.bounds[j + 1] = next;  // position of the next value; finally, one past the last
            if (!is_frequent) next += n;
        }
        for (std::size_t i = 0; i < n_frequent * n_lanes_; ++i) memory_.of_frequent[i] = Real{0};
    }

    void add(std::size_t lane, const Coordinates& x) {
        for (std::size_t k = 0; k < x.n; ++k) {
            const Real value = static_cast<Real>(x.values[k]);
            const std::size_t j = x.feature(k);
            if (memory_.frequent[j] > 0) {
                memory_.of_frequent[(memory_.frequent[j] - std::size_t{1}) * n_lanes_ + lane] = value;
                continue;
            }
            const std::uint32_t entry = memory_.bounds[j + 1]++;
            memory_.lanes[entry] = static_cast<std::uint32_t>(lane);
            memory_.values[entry] = value;
        }
        if (x.n > max_values_) max_values_ = x.n;
    }

    SparseColumns<Real> columns() const {
        return {n_lanes_,       max_values_,      memory_.bounds,     memory_.lanes,
                memory_.values, memory_.frequent, memory_.of_frequent};
    }

  private:
    std::size_t n_at_least(std::size_t least) const {
        std::size_t n = 0;
        for (std::size_t j = 0; j < n_features_; ++j) n += memory_.bounds[j + 1] >= least;
        return n;
    }

    const SparseColumnsMemory<Real> memory_;
    const std::size_t n_lanes_, n_features_;
    std::size_t max_values_ = 0;
};

// Sets products[lane] to the inner product of a row with the lane's support vector, for all n_lanes lanes, a multiple
// of lanes_of<Real>. For k < n_terms, feature columns[k] of the row has the value values[k]. The summation depth of a
// term is at most the number of nonzeros shared by the row and the support vector, because adding zeros causes no
// rounding.
template <class Real>
inline void column_products(const SparseColumns<Real>& x, const Real* values, const std::int32_t* columns,
                            std::size_t n_terms, Real* products) {
    using Register = typename RegisterOf<Real>::type;
    constexpr std::size_t width = static_cast<std::size_t>(lanes_of<Real>);
    for (std::size_t i = 0; i < x.n_lanes; i += width) store(products + i, set1(Real{0}));
    for (std::size_t k = 0; k < n_terms; ++k) {
        const std::size_t j = static_cast<std::size_t>(columns[k]);
        const Real u = values[k];
        if (x.frequent[j] > 0) {
            const Real* const of_feature = x.of_frequent + (x.frequent[j] - std::size_t{1}) * x.n_lanes;
            const Register wide = set1(u);
            for (std::size_t i = 0; i < x.n_lanes; i += width) {
                store(products + i, fmadd(wide, load(of_feature + i), load(products + i)));
            }
            continue;
        }
        std::uint32_t entry = x.bounds[j];
        const std::uint32_t end = x.bounds[j + 1];
        for (; end - entry >= 4; entry += 4) {  // four sums at a time; the lanes of a feature differ
            Real sum[4];
            APPROXSVM_UNROLL for (std::uint32_t i = 0; i < 4; ++i) {
                sum[i] = products[x.lanes[entry + i]] + u * x.values[entry + i];
            }
            APPROXSVM_UNROLL for (std::uint32_t i = 0; i < 4; ++i) products[x.lanes[entry + i]] = sum[i];
        }
        for (; entry != end; ++entry) products[x.lanes[entry]] += u * x.values[entry];
    }
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif
