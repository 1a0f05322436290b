// Queues of rows for an exact engine. Dense rows wait until a block is full. If the engine's center is the origin, rows
// with few non-zeros wait in a separate buffer, because their cost is proportional to the non-zeros. Each row's sums
// are offered to the cascade, which accepts or rejects them.
#pragma once

#include "prepared.hpp"
#include "row_source.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Whether rows are evaluated one by one or as a block with one row per lane; the two add up in a different order. For
// few rows, one by one is cheaper. If values are requested, all rows of a call are evaluated in the same way, so that
// no value depends on other rows. Labels do not depend on the way, so each queue decides by the number of rows that it
// holds.
struct Batch {
    bool rows_alone;     // in an expansion, if it has too few rows to fill the lanes
    bool engines_alone;  // in the exact engines
    bool goes_by_queue;
    std::size_t alone_eighths;  // eighths of a register's lanes: so few rows are evaluated one by one

    // Whether n rows that wait for a block of this many lanes are evaluated one by one.
    bool alone_in_expansion(std::size_t n) const {
        return goes_by_queue ? engines_alone || 3 * n <= lanes + 2
                             : rows_alone;  // a small call has no memory for a block
    }
    bool alone_in_engine(std::size_t n, std::size_t n_lanes = lanes) const {
        return engines_alone || (goes_by_queue && n <= most_alone(n_lanes));
    }
    // How many of n rows: those beyond full registers, which cost about half as much as the first one.
    std::size_t n_alone_in_engine(std::size_t n, std::size_t n_lanes) const {
        if (alone_in_engine(n, n_lanes)) return n;
        const std::size_t beyond = n % n_lanes;
        return goes_by_queue && n > n_lanes && 2 * beyond <= most_alone(n_lanes) ? beyond : 0;
    }

  private:
    std::size_t most_alone(std::size_t n_lanes) const { return alone_eighths * n_lanes / 8; }
};

// The support vectors are in the lanes when a row is alone, and loading them takes most of the time. Compared with its
// share of a full register of rows, it costs 4/3 as much if lanes are few or exp is most of the work. With sixteen
// lanes it costs 1.7 times as much from the first-level cache, else 2.6 times (ijcnn1, usps, covtype, pendigits and
// svmguide1 on a Zen 5).
inline std::size_t alone_eighths_of(const ModelView& model) {
    constexpr std::size_t first_level_bytes = std::size_t{1} << 14;
    if (lanes < 16 || model.n_features <= 8) return 6;
    return model.n_sv * model.n_features * sizeof(float) <= first_level_bytes ? 4 : 3;
}

// Number of rows that a call may have, which determines its memory. If all rows are evaluated one by one (batch_of),
// blocks of rows need no memory.
struct CallRows {
    std::size_t n, side_by_side;

    CallRows(std::size_t n_rows, bool has_batches)
        : n(n_rows), side_by_side(!has_batches || n_rows <= max_single_rows ? 1 : block_rows) {}

    // Returns the size of a block that the stages share: rows in its lanes, or one row of doubles.
    std::size_t block_bytes(const ModelView& model) const {
        return side_by_side > 1
                   ? workspace_bytes(model.n_features)
                   : model.n_features * sizeof(double) + (4 * block_rows + panel_rows) * sizeof(float) + 64;
    }
    std::size_t at_most(std::size_t n_rows) const { return n < n_rows ? n : n_rows; }
};
// The batch size, for the parts that need memory.
template <Parts parts>
struct CallOf : CallRows {
    explicit CallOf(std::size_t n_rows) : CallRows(n_rows, has(parts, batches)) {}
};
// Means calls of any size.
constexpr std::size_t any_number_of_rows = ~std::size_t{0};

// The part of a row's bound that is not rounding: the distance between the source's function and this one, and the
// effect of the row's error, at most A1 because kernels are between 0 and 1. `slope` is kernel_slope(gamma).
APPROXSVM_INLINE double row_slack(const DecisionNumbers& decision, double slope, double row_error) {
    if (row_error == 0.0) return decision.value_error;  // NaN goes on
    const double moved = slope * row_error;
    return 1.0001 * (decision.value_error + decision.sum_moduli * (moved < 1.0 ? moved : 1.0));
}
inline double row_error_of(const Request& request, std::size_t row) {
    return request.row_errors ? request.row_errors[row] : 0.0;
}
// Whether a value and its bound are within float64. A bound that is infinite only because of the row's error counts as
// within.
inline bool is_within_float64(double value, double bound, double row_error) {
    return bound < HUGE_VAL || (is_finite(value) && !(row_error < HUGE_VAL));
}

template <Parts parts>
inline Batch batch_of(const ModelView& model, std::size_t n_rows, bool labels_only) {
    if (!has(parts, batches)) return {true, true, labels_only, 0};
    const std::size_t n_groups = model.n_centers > 1 ? model.n_centers : 1;
    return {n_rows <= max_single_rows * n_groups, n_rows <= max_single_rows, labels_only, alone_eighths_of(model)};
}

// --- sums of engines

// The sums that an engine computes for a row. The stages below are compiled once for all kinds of engines: compared
// with the sums, a virtual call is cheap.
template <class Real>
class EngineSums {
  public:
    const KernelSum<Real>& kernels;
    const std::size_t n_sums;
    const bool by_row;         // layout for sparse rows: row by row, or else sum by sum
    const bool counts_unseen;  // whether kernels depend on distances, to which features unknown to the model contribute

    // Sums of rows in the lanes of a block, of one row, and of sparse rows.
    virtual void block(std::size_t n_registers, const Real* u, const Real* half_sq_norm, double* sums) const = 0;
    virtual void row(const Real* u, Real half_sq_norm, double* sums) const = 0;
    virtual void sparse(const Real* values, const std::int32_t* columns, const std::size_t* starts, std::size_t n,
                        const Real* half_sq_norm, double* sums) const = 0;

  protected:
    EngineSums(const KernelSum<Real>& k, std::size_t n, bool are_by_row, bool unseen_count)
        : kernels(k), n_sums(n), by_row(are_by_row), counts_unseen(unseen_count) {}
    ~EngineSums() = default;
};

// Implements EngineSums for a kind of `Sums`, one of the kinds below.
template <Parts parts, class Real, class Sums>
class SumsOf : public EngineSums<Real> {
  public:
    explicit SumsOf(const Sums& sums)
        : EngineSums<Real>(sums.kernels, sums.n_sums(), Sums::by_row, Sums::counts_unseen), sums_(sums) {}

    // Not inlined, because compilers devirtualize by guessing.
    APPROXSVM_NOINLINE void block(std::size_t n_registers, const Real* u, const Real* half_sq_norm,
                                  double* sums) const override {
        with_registers_for<has(parts, batches)>(
            n_registers, 1, [&](auto registers) { sums_.template block<registers.value>(u, half_sq_norm, sums); });
    }
    APPROXSVM_NOINLINE void row(const Real* u, Real half_sq_norm, double* sums) const override {
        sums_.row(u, half_sq_norm, sums);
    }
    APPROXSVM_NOINLINE void sparse(const Real* values, const std::int32_t* columns, const std::size_t* starts,
                                   std::size_t n, const Real* half_sq_norm, double* sums) const override {
        if constexpr (has(parts, approxsvm::sparse)) sums_.sparse(values, columns, starts, n, half_sq_norm, sums);
    }

  protected:
    ~SumsOf() = default;

  private:
    const Sums sums_;
};

// The sum and the weighted moduli of one decision function.
template <class Real>
struct SingleSums {
    static constexpr bool by_row = false;  // layout for sparse rows: sum by sum
    static constexpr bool counts_unseen = true;

    const KernelSum<Real>& kernels;
    Real* const products;  // see room_for_products
    static std::size_t n_sums() { return 2; }

    template <int Registers>
    void block(const Real* u, const Real* half_sq_norm, double* sums) const {
        constexpr std::size_t n_lanes = static_cast<std::size_t>(Registers * lanes_of<Real>);
        kernel_sums_block<Registers>(kernels, u, half_sq_norm, sums, sums + n_lanes);
    }
    void row(const Real* u, Real half_sq_norm, double* sums) const {
        kernel_sums_row(kernels, u, half_sq_norm, sums[0], sums[1]);
    }
    void sparse(const Real* values, const std::int32_t* columns, const std::size_t* starts, std::size_t n,
                const Real* half_sq_norm, double* sums) const {
        kernel_sums_sparse(kernels, values, columns, starts, n, half_sq_norm, sums, sums + n, products);
    }
};

// The sums of all pairs of classes, or of several functions.
template <class Real>
struct ClassSums {
    static constexpr bool by_row = true, counts_unseen = true;

    const ClassKernelSum<Real>& expansion;
    Real* const products;  // see room_for_products
    const KernelSum<Real>& kernels = expansion.kernels;
    std::size_t n_sums() const { return expansion.n_sums(); }

    template <int Registers>
    void block(const Real* u, const Real* half_sq_norm, double* sums) const {
        class_sums_block<Registers>(expansion, u, half_sq_norm, sums);
    }
    void row(const Real* u, Real half_sq_norm, double* sums) const {
        class_sums_row(expansion, {u, kernels.n_features}, half_sq_norm, sums);
    }
    void sparse(const Real* values, const std::int32_t* columns, const std::size_t* starts, std::size_t n,
                const Real* half_sq_norm, double* sums) const {
        class_sums_sparse(expansion, values, columns, starts, n, half_sq_norm, sums, products);
    }
};

// Space for the sums of the rows that are evaluated together; fewer sparse rows if there are many sums.
constexpr std::size_t sparse_rows_together(std::size_t n_sums) {
    return n_sums <= 128 ? sparse_block_rows : static_cast<std::size_t>(rows_together) * 4;
}
inline std::size_t sums_room(std::size_t n_sums, const CallRows& call) {
    const std::size_t n_sparse = call.at_most(sparse_rows_together(n_sums));
    return n_sums * (n_sparse > call.side_by_side ? n_sparse : call.side_by_side);
}

// Returns space for the inner products of a row by columns.
template <class Real>
inline std::size_t room_for_products(const ModelView& model) {
    if (!by_columns(model)) return 0;
    if (is_of_products(model)) return class_kernel_panels<Real>(polynomial_sizes(model)) * panel_width<Real>;
    if (has_classes(model)) return class_kernel_panels<Real>(sizes_of_classes(model)) * panel_width<Real>;
    return KernelSumMemory<Real>::n_lanes(model.n_sv);
}

// Capacity for the non-zeros that wait for an engine. Many rows wait, because all of them pass over a panel while the
// cache holds it. By columns only one row waits, with up to as many non-zeros as there are features.
struct NonzeroRoom {
    unsigned char* memory;
    std::size_t n_bytes;

    template <class Real>
    static NonzeroRoom of(const ModelView& model, const CallRows& call, Arena& arena) {
        // non-zeros that a row may have
        const std::size_t d = model.n_features, of_one = by_columns(model) ? d : d / 3;
        const bool is_for_one = by_columns(model) || call.side_by_side == 1;
        const std::size_t n_bytes = !has_engines(model) ? 0
                                    : is_for_one        ? of_one * (sizeof(Real) + sizeof(std::int32_t))
                                                        : workspace_bytes(d);
        return {arena.take<unsigned char>(n_bytes), n_bytes};
    }
    template <class Real>
    std::size_t capacity() const {
        return n_bytes / (sizeof(Real) + sizeof(std::int32_t));
    }
};

// Loads n rows around the engines' center into the lanes of a block, and zeros into the unused lanes.
template <class Real>
APPROXSVM_NOINLINE void load_engine_block(const PreparedModel& prepared, const RowSource& source,
                                          const std::size_t* rows, std::size_t n, std::size_t n_registers, Real* block,
                                          double* unseen) {
    const std::size_t stride = n_registers * static_cast<std::size_t>(lanes_of<Real>);
    const ModelView& model = *prepared.view;
    if constexpr (sizeof(Real) == sizeof(float)) {
        if (!model.packed.reference) {  // a center in float32: load many rows side by side
            const float* const center = prepared.engine_center ? model.center : prepared.zeros;
            return source.load_block(n_registers, rows, n, center, model.input_scale, block, unseen);
        }
    }
    for (std::size_t r = 0; r < n; ++r) {
        unseen[r] = source.load(rows[r], prepared.engine_center, model.input_scale, block + r, stride);
    }
    for (std::size_t j = 0; n < stride && j < model.n_features; ++j) {
        for (std::size_t r = n; r < stride; ++r) block[j * stride + r] = Real{0};
    }
}

// --- one engine

// The sums that an engine computed for a row: sum f is sums[f * stride].
template <class Real>
struct RowSums {
    const double* sums;
    std::size_t stride;
    Real half_sq_norm;
    std::size_t n_terms;  // number of possibly non-zero coordinates
};

// Receives the sums of rows.
template <class Real>
class Offer {
  public:
    virtual void take(std::size_t i, const RowSums<Real>& sums) const = 0;
    // Called first, with the sums of a block of `stride` lanes. is_settled marks the rows that are finished.
    virtual void take_block(std::size_t, const std::size_t*, std::size_t, const double*, const Real*, bool*) const {}

  protected:
    ~Offer() = default;
};

// An Offer that processes row by row.
template <class Real, class TakeRow>
class OfferByRow final : public Offer<Real> {
  public:
    explicit OfferByRow(const TakeRow& take_row) : take_row_(take_row) {}
    APPROXSVM_NOINLINE void take(std::size_t i, const RowSums<Real>& sums) const override { take_row_(i, sums); }

  private:
    const TakeRow take_row_;
};
template <class Real, class TakeRow>
inline OfferByRow<Real, TakeRow> offer_by_row(const TakeRow& take_row) {
    return OfferByRow<Real, TakeRow>(take_row);
}

// All rows are dense if the list has no sparse rows.
template <Parts parts, class Real>
class EngineStage {
  public:
    // `block` has space for a block of rows and may be shared; `nonzeros` and `room` (sums_room()) may not.
    APPROXSVM_NOINLINE EngineStage(const PreparedModel& prepared, const RowSource& source, const Batch& batch,
                                   const EngineSums<Real>& sums, float* block, const NonzeroRoom& nonzeros,
                                   double* room)
        : prepared_(prepared),
          view_(*prepared.view),
          source_(source),
          sums_(sums),
          batch_(batch),
          stays_sparse_(has(parts, sparse) &&
                        (prepared.by_columns || (sums.counts_unseen ? prepared.at_reference : source.is_sparse()))),
          sparse_rows_(prepared.by_columns ? 1 : sparse_rows_together(sums.n_sums)),
          most_nonzeros_(prepared.by_columns ? view_.n_features : view_.n_features / 3),
          block_(reinterpret_cast<Real*>(block)),
          room_(room),
          capacity_(nonzeros.capacity<Real>()),
          values_(reinterpret_cast<Real*>(nonzeros.memory)),
          columns_(reinterpret_cast<std::int32_t*>(values_ + capacity_)) {
        starts_[0] = 0;
    }

    // Adds row i. Offers the sums of all waiting rows as soon as computing them pays.
    void send(std::size_t i, const Offer<Real>& offer) {
        if (send_sparse(i, most_nonzeros_, offer)) return;
        dense_[n_dense_++] = i;
        if (n_dense_ == dense_capacity) settle_dense(offer);
    }
    // Adds row i if its non-zeros make it cheap. It may have up to `limit` of them, at most a third of the features; by
    // columns every row qualifies.
    bool send_sparse(std::size_t i, std::size_t limit, const Offer<Real>& offer) {
        if constexpr (has(parts, sparse)) return stays_sparse_ && add_sparse(i, limit, offer);
        return false;
    }

    void finish(const Offer<Real>& offer) {
        settle_dense(offer);
        if constexpr (has(parts, sparse)) settle_sparse(offer);
    }

  private:
    static constexpr std::size_t width = static_cast<std::size_t>(lanes_of<Real>);
    static constexpr std::size_t dense_capacity = max_registers * width;

    // Returns the contribution of unknown features to half_sq_norm; zero for kernels of inner products.
    Real weight_of(double unseen) const {
        return sums_.counts_unseen ? static_cast<Real>(view_.gamma * unseen) : Real{0};
    }

    // False for a row with more than `limit` non-zeros, which is cheaper as a dense row.
    APPROXSVM_NOINLINE bool add_sparse(std::size_t i, std::size_t limit, const Offer<Real>& offer) {
        if (n_sparse_ == sparse_rows_ || capacity_ - starts_[n_sparse_] < limit) settle_sparse(offer);
        const std::size_t r = n_sparse_, start = starts_[r];
        double unseen;
        const std::size_t n = source_.load_nonzeros(i, prepared_.engine_center, view_.input_scale, limit,
                                                    values_ + start, columns_ + start, unseen);
        if (n > limit) return false;
        const Real seen = half_sq_norm_row(sums_.kernels, values_ + start, n);
        half_sq_norm_[r] = seen + weight_of(unseen);
        sparse_[r] = i;
        starts_[++n_sparse_] = start + n;
        return true;
    }

    APPROXSVM_NOINLINE void settle_sparse(const Offer<Real>& offer) {
        const std::size_t n = n_sparse_;
        n_sparse_ = 0;
        if (n == 0) return;
        sums_.sparse(values_, columns_, starts_, n, half_sq_norm_, room_);
        for (std::size_t r = 0; r < n; ++r) {
            const double* sums = sums_.by_row ? room_ + r * sums_.n_sums : room_ + r;
            const std::size_t n_terms = starts_[r + 1] - starts_[r];
            offer.take(sparse_[r], RowSums<Real>{sums, sums_.by_row ? 1 : n, half_sq_norm_[r], n_terms});
        }
    }

    APPROXSVM_NOINLINE void settle_dense(const Offer<Real>& offer) {
        const std::size_t n = n_dense_;
        n_dense_ = 0;
        if (n == 0) return;
        const std::size_t n_together = n - batch_.n_alone_in_engine(n, width);
        Real half_sq_norm[dense_capacity];
        bool is_settled[dense_capacity] = {};
        std::size_t stride = 1;
        if (has(parts, batches) && n_together > 0) {
            const std::size_t n_registers = registers_for(n_together, width);
            stride = n_registers * width;
            add_up_block(n_registers, n_together, half_sq_norm);
            offer.take_block(stride, dense_, n_together, room_, half_sq_norm, is_settled);
        }
        for (std::size_t r = 0; r < n; ++r) {
            if (is_settled[r]) continue;
            const bool is_alone = r >= n_together;
            if (is_alone) half_sq_norm[r] = add_up_row(dense_[r]);
            offer.take(dense_[r], RowSums<Real>{is_alone ? room_ : room_ + r, is_alone ? 1 : stride, half_sq_norm[r],
                                                view_.n_features});
        }
    }

    // Evaluates n rows, one SIMD lane each, with zeros in the unused lanes.
    void add_up_block(std::size_t n_registers, std::size_t n, Real* half_sq_norm) {
        double unseen[dense_capacity] = {};
        load_engine_block(prepared_, source_, dense_, n, n_registers, block_, unseen);
        with_registers_for<has(parts, batches)>(n_registers, 1, [&](auto registers) {
            half_sq_norms_block<registers.value>(sums_.kernels, block_, half_sq_norm);
        });
        for (std::size_t r = 0; r < n; ++r) half_sq_norm[r] += weight_of(unseen[r]);
        sums_.block(n_registers, block_, half_sq_norm, room_);
    }

    // Evaluates one row; returns its half_sq_norm.
    Real add_up_row(std::size_t i) {
        const double unseen = source_.load(i, prepared_.engine_center, view_.input_scale, block_, 1);
        const Real seen = half_sq_norm_row(sums_.kernels, block_, view_.n_features);
        const Real half_sq_norm = seen + weight_of(unseen);
        sums_.row(block_, half_sq_norm, room_);
        return half_sq_norm;
    }

    const PreparedModel& prepared_;
    const ModelView& view_;
    const RowSource& source_;
    const EngineSums<Real>& sums_;
    const Batch batch_;
    const bool stays_sparse_;
    const std::size_t sparse_rows_, most_nonzeros_;
    Real* const block_;
    double* const room_;

    std::size_t n_dense_ = 0, n_sparse_ = 0;
    std::size_t dense_[dense_capacity];
    std::size_t sparse_[sparse_block_rows], starts_[sparse_block_rows + 1];
    Real half_sq_norm_[sparse_block_rows];
    const std::size_t capacity_;  // non-zeros
    Real* const values_;
    std::int32_t* const columns_;
};

// An engine with the sums of a kind.
template <Parts parts, class Real, class Sums>
class EngineOf : SumsOf<parts&(sparse | batches), Real, Sums>, public EngineStage<parts&(sparse | batches), Real> {
  public:
    EngineOf(const PreparedModel& prepared, const RowSource& source, const Batch& batch, const Sums& sums, float* block,
             const NonzeroRoom& nonzeros, double* room)
        : EngineOf::SumsOf(sums), EngineOf::EngineStage(prepared, source, batch, *this, block, nonzeros, room) {}
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm
