// Row queues for an exact engine. Dense rows wait until a block is full. If rows may stay sparse, those with few
// nonzeros wait in a separate buffer, because their cost is proportional to the number of nonzeros. The sums of each
// row are offered to the cascade, which accepts or rejects them.
#ifndef APPROXSVM_PREDICT_STAGES_ENGINE_HPP
#define APPROXSVM_PREDICT_STAGES_ENGINE_HPP

#include "../prepare/thread_memory.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// --- engine sums

// The sums computed by an engine for a row. The stages below are compiled once for all kinds of engines, because a
// virtual call costs little compared with the sums.
template <class Real>
class EngineSums {
  public:
    const KernelVectors<Real>& vectors;
    const std::size_t n_sums;
    const bool counts_unseen;  // true if kernels depend on distances, so that unknown features contribute

    // These functions compute the sums for rows in the lanes of a block, for one row, and for sparse rows.
    virtual void block(std::size_t n_registers, const Real* u, const Real* half_sq_norm, double* sums) const = 0;
    virtual void row(const Real* u, Real half_sq_norm, double* sums) const = 0;
    virtual void sparse(const Real* values, const std::int32_t* columns, const std::size_t* starts, std::size_t n,
                        const Real* half_sq_norm, double* sums) const = 0;

  protected:
    EngineSums(const KernelVectors<Real>& v, std::size_t n, bool unseen_count)
        : vectors(v), n_sums(n), counts_unseen(unseen_count) {}
    ~EngineSums() = default;
};

// Implements EngineSums with one of the `Sums` types below.
template <Parts parts, class Real, class Sums>
class SumsOf : public EngineSums<Real> {
  public:
    explicit SumsOf(const Sums& sums)
        : EngineSums<Real>(sums.vectors, sums.n_sums(), Sums::counts_unseen), sums_(sums) {}

    // These functions are not inlined, because compilers would inline them where they guess an object's type.
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

// Loads n rows, relative to the engines' center, into the lanes of a block; unused lanes are filled with zeros.
template <class Real>
APPROXSVM_NOINLINE void load_engine_block(const Job& job, const std::size_t* rows, std::size_t n,
                                          std::size_t n_registers, Real* block, double* unseen) {
    const PreparedModel& prepared = job.prepared;
    const RowSource& source = job.source;
    const std::size_t stride = n_registers * static_cast<std::size_t>(lanes_of<Real>);
    const ModelView& model = *prepared.view;
    if constexpr (sizeof(Real) == sizeof(float)) {
        if (!model.packed.reference) {  // a float32 center, so many rows are loaded at once
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

// The sums computed by an engine for a row: sum f is sums[f * stride].
template <class Real>
struct RowSums {
    const double* sums;
    std::size_t stride;
    Real half_sq_norm;
    std::size_t n_terms;  // number of coordinates that may be nonzero
};

// The interface that receives the sums for rows.
template <class Real>
class Offer {
  public:
    virtual void take(std::size_t i, const RowSums<Real>& sums) = 0;
    // Receives the sums for a block of `stride` lanes, before take(); marks finished rows in is_settled.
    virtual void take_block(std::size_t, const std::size_t*, std::size_t, const double*, const Real*, bool*) {}

  protected:
    ~Offer() = default;
};

// A queue of rows for one engine. If the list of parts does not contain `sparse`, all rows are dense.
template <Parts parts, class Real>
class EngineStage {
  public:
    APPROXSVM_NOINLINE EngineStage(const Job& job, const EngineSums<Real>& sums, const EngineRoom<Real>& room,
                                   Offer<Real>& next)
        : job_(job),
          sums_(sums),
          next_(next),
          room_(room),
          block_(reinterpret_cast<Real*>(room.block)),
          stays_sparse_(
              has(parts, sparse) &&
              (job.prepared.by_columns || (sums.counts_unseen ? job.prepared.at_reference : job.source.is_sparse()))),
          sparse_rows_(job.prepared.by_columns ? 1 : sparse_rows_together(sums.n_sums)),
          most_nonzeros_(job.prepared.by_columns ? job.view.n_features : job.view.n_features / 3) {
        starts_[0] = 0;
    }

    // Adds row i. As soon as it is worthwhile, computes the sums for all waiting rows and offers them to the cascade.
    void send(std::size_t i) {
        if (send_sparse(i, most_nonzeros_)) return;
        if (dense_.add(i)) settle_dense();
    }
    // Adds row i if it is cheap because it has at most `limit` nonzeros; `limit` is at most a third of the features. If
    // support vectors are stored by column, every row qualifies.
    bool send_sparse(std::size_t i, std::size_t limit) {
        if constexpr (has(parts, sparse)) return stays_sparse_ && add_sparse(i, limit);
        return false;
    }

    void finish() {
        settle_dense();
        if constexpr (has(parts, sparse)) settle_sparse();
    }

  private:
    static constexpr std::size_t width = static_cast<std::size_t>(lanes_of<Real>);
    static constexpr std::size_t dense_capacity = max_registers * width;

    // Returns the contribution of unknown features to half_sq_norm; it is zero for kernels of inner products.
    Real weight_of(double unseen) const {
        return sums_.counts_unseen ? static_cast<Real>(job_.view.gamma * unseen) : Real{0};
    }

    // Adds a sparse row; returns false if it has more than `limit` nonzeros, which makes it cheaper to evaluate as a
    // dense row.
    APPROXSVM_NOINLINE bool add_sparse(std::size_t i, std::size_t limit) {
        if (n_sparse_ == sparse_rows_ || room_.capacity - starts_[n_sparse_] < limit) settle_sparse();
        const std::size_t r = n_sparse_, start = starts_[r];
        double unseen;
        Real* const values = room_.values + start;
        const std::size_t n = job_.source.load_nonzeros(i, job_.prepared.engine_center, job_.view.input_scale, limit,
                                                        values, room_.columns + start, unseen);
        if (n > limit) return false;
        const Real seen = half_sq_norm_row(sums_.vectors, values, n);
        half_sq_norm_[r] = seen + weight_of(unseen);
        sparse_[r] = i;
        starts_[++n_sparse_] = start + n;
        return true;
    }

    APPROXSVM_NOINLINE void settle_sparse() {
        const std::size_t n = n_sparse_;
        n_sparse_ = 0;
        if (n == 0) return;
        sums_.sparse(room_.values, room_.columns, starts_, n, half_sq_norm_, room_.sums);
        for (std::size_t r = 0; r < n; ++r) {
            const std::size_t n_terms = starts_[r + 1] - starts_[r];
            next_.take(sparse_[r], RowSums<Real>{room_.sums + r * sums_.n_sums, 1, half_sq_norm_[r], n_terms});
        }
    }

    APPROXSVM_NOINLINE void settle_dense() {
        const std::size_t n = dense_.take();
        if (n == 0) return;
        const std::size_t n_together = n - job_.batch.n_alone_in_engine(n, width);
        Real half_sq_norm[dense_capacity];
        bool is_settled[dense_capacity] = {};
        std::size_t stride = 1;
        if (has(parts, batches) && n_together > 0) {
            const std::size_t n_registers = registers_for(n_together, width);
            stride = n_registers * width;
            add_up_block(n_registers, n_together, half_sq_norm);
            next_.take_block(stride, dense_.rows, n_together, room_.sums, half_sq_norm, is_settled);
        }
        for (std::size_t r = 0; r < n; ++r) {
            if (is_settled[r]) continue;
            const bool is_alone = r >= n_together;
            if (is_alone) half_sq_norm[r] = add_up_row(dense_.rows[r]);
            next_.take(dense_.rows[r], RowSums<Real>{is_alone ? room_.sums : room_.sums + r, is_alone ? 1 : stride,
                                                     half_sq_norm[r], job_.view.n_features});
        }
    }

    // Evaluates n rows, one per SIMD lane, with zeros in the unused lanes.
    void add_up_block(std::size_t n_registers, std::size_t n, Real* half_sq_norm) {
        double unseen[dense_capacity] = {};
        load_engine_block(job_, dense_.rows, n, n_registers, block_, unseen);
        with_registers_for<has(parts, batches)>(n_registers, 1, [&](auto registers) {
            half_sq_norms_block<registers.value>(sums_.vectors, block_, half_sq_norm);
        });
        for (std::size_t r = 0; r < n; ++r) half_sq_norm[r] += weight_of(unseen[r]);
        sums_.block(n_registers, block_, half_sq_norm, room_.sums);
    }

    // Evaluates one row; returns its half_sq_norm.
    Real add_up_row(std::size_t i) {
        const double unseen = job_.source.load(i, job_.prepared.engine_center, job_.view.input_scale, block_, 1);
        const Real seen = half_sq_norm_row(sums_.vectors, block_, job_.view.n_features);
        const Real half_sq_norm = seen + weight_of(unseen);
        sums_.row(block_, half_sq_norm, room_.sums);
        return half_sq_norm;
    }

    const Job& job_;
    const EngineSums<Real>& sums_;
    Offer<Real>& next_;
    const EngineRoom<Real>& room_;
    Real* const block_;
    const bool stays_sparse_;
    const std::size_t sparse_rows_, most_nonzeros_;

    RowQueue<dense_capacity> dense_;
    std::size_t n_sparse_ = 0;
    std::size_t sparse_[sparse_block_rows], starts_[sparse_block_rows + 1];
    Real half_sq_norm_[sparse_block_rows];
};

// An engine with a given type of sums.
template <Parts parts, class Real, class Sums>
class EngineOf : SumsOf<parts&(sparse | batches), Real, Sums>, public EngineStage<parts&(sparse | batches), Real> {
  public:
    EngineOf(const Job& job, const Sums& sums, const EngineRoom<Real>& room, Offer<Real>& next)
        : EngineOf::SumsOf(sums), EngineOf::EngineStage(job, *this, room, next) {}
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif
