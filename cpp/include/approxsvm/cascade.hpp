// Values with a proof: each row is answered by the cheapest stage whose error bound suffices.
//
//     expansion -> the same value with a bound that knows the row's direction -> exact engine in float32 -> in float64
//     -> the definition, term after term in LIBSVM's order
//
// A model of mode exact starts with the exact engine; an approximate one has only the expansion and reports its bound.
// A row suffices when its label cannot differ from the exact one, |value| > bound, and its bound is within the model's
// tolerance. Rows that a stage leaves open are collected and go on to the next one together, a full block at a time;
// each lane computes what it would compute alone, so results do not depend on who shares a block.
#pragma once

#include "artifact.hpp"
#include "prepared.hpp"
#include "row_source.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// --- bounds of the later stages

// certificate.md, 3 (iv): float64 sums of direct differences.
inline double definition_bound(const ModelView& model, double moduli) {
    const double a1 = model.sum_moduli, share = a1 > 0.0 ? moduli / a1 : 0.0;
    const double h = share > 0.3678794411714423 || !(share > 0.0) ? 0.3678794411714424 : -share * std::log(share);
    const double d = static_cast<double>(model.n_features), n = static_cast<double>(model.n_sv);
    return 1.01 * unit64 * ((d + 6.0) * a1 * h + (n + 6.0) * moduli) + 0x1p-51 * std::fabs(model.intercept) +
           0x1p-1000 * a1 + 0x1p-1040;  // underflow, also of coefficients that are denormal themselves
}

// exp(-s/2) times the degree-3 part is at most exp(-s/2) sqrt(v'G_3 v) s / sqrt(6), v = sqrt(2 gamma) (z - center),
// ||v||^2 = s.
inline double direction_bound(const ModelView& model, float form, float half_s) {
    const double widen = s_error(model.n_features);
    const double s = 2.0 * static_cast<double>(half_s) * (1.0 + widen);
    const double theta = 2.0 * static_cast<double>(model.half_theta) * (1.0 + 0x1p-20);
    const double computed = form > 0.0f ? theta * model.direction_scale * static_cast<double>(form) : 0.0;
    const double rounding =
        1.01 * unit32 * (form_path(model.n_features) + 4.0) * model.direction_trace + model.direction_error;
    const double gaussian = std::exp(-static_cast<double>(half_s) * (1.0 - widen));
    return 1.000001 * gaussian * s * std::sqrt((computed + rounding * s) / 6.0);
}

// What float64 rounding adds for a sparse row (certificate.md, 3 (ii)); infinite where s itself is too uncertain.
inline double sparse_rounding_bound(const ModelView& model, const FoldedModel& folded, const SparseValue& row,
                                    std::size_t n_nonzero) {
    const double n = static_cast<double>(n_nonzero), scaled_norm = model.input_scale * row.row_norm;
    const double center_norm = std::sqrt(folded.center_sq_norm) / model.input_scale, reach = row.row_norm + center_norm;
    const double s_uncertainty = 4.0 * model.gamma * (n + 5.0) * unit64 * reach * reach;
    const double s = 2.0 * row.half_s;
    if (!(s_uncertainty <= 0x1p-12 * (s > 0x1p-20 ? s : 0x1p-20))) return infinity;
    if (row.half_s > -static_cast<double>(exp_min_argument)) return 0.0;  // the bare intercept: the table knows all
    const double moduli = std::fabs(folded.constant) + folded.linear_norm * row.row_norm +
                          folded.quadratic_norm * scaled_norm * scaled_norm;
    const double kept = model.norms[0] + model.norms[1] + model.norms[2];
    return 1.01 * (unit64 * (2.0 * n + 8.0) * row.gaussian * moduli + std::expm1(s_uncertainty) * kept);
}

// --- the cascade

// Scratch memory per thread: a block of rows for the first stage, one for the later ones, and the non-zeros of sparse
// rows for either engine.
constexpr std::size_t evaluation_workspace_bytes(std::size_t n_features) {
    return 4 * workspace_bytes(n_features);
}

// Rows on their way to the exact engine in one precision: dense ones until a block is full and, where the engine's
// center is the origin, rows with few non-zeros until their buffer is, for there the work follows the non-zeros.
template <class Real>
struct EngineQueue {
    static constexpr std::size_t dense_capacity = max_registers * static_cast<std::size_t>(lanes_of<Real>);

    EngineQueue(void* memory, std::size_t n_bytes)
        : capacity(n_bytes / (sizeof(Real) + sizeof(std::int32_t))),
          values(reinterpret_cast<Real*>(memory)),
          columns(reinterpret_cast<std::int32_t*>(values + capacity)) {}

    std::size_t n_dense = 0, n_sparse = 0;
    std::size_t dense[dense_capacity];
    std::size_t sparse[sparse_block_rows], starts[sparse_block_rows + 1] = {0};
    Real half_sq_norm[sparse_block_rows];
    std::size_t capacity;  // non-zeros
    Real* values;
    std::int32_t* columns;
};

template <class Source>
class Cascade {
  public:
    Cascade(const PreparedModel& prepared, const Source& source, const Evaluation& out, std::uint64_t* counts,
            bool one_by_one, void* workspace)
        : prepared_(prepared),
          view_(*prepared.view),
          source_(source),
          out_(out),
          counts_(counts),
          block_(region(workspace, 1)),
          one_by_one_(one_by_one),
          at_origin_(engine_at_origin(*prepared.view)),
          n_open_(0),
          queue32_(region(workspace, 2), workspace_bytes(prepared.view->n_features) - 64),
          queue64_(region(workspace, 3), workspace_bytes(prepared.view->n_features) - 64) {}

    // Takes a value of the expansion; `extra` is what the table does not know.
    void offer_expansion(std::size_t i, double value, float half_s, double extra) {
        const std::size_t cell = cell_of(half_s);
        const double bound = static_cast<double>(prepared_.bound_table[cell]) + extra;
        if (view_.mode == Mode::approximate || suffices(value, bound)) return settle(i, value, bound, by_expansion);
        if (!has_direction(view_) || !(half_s < 87.0f)) return send_to_engine(i, bound);
        open_[n_open_++] = {i, value, extra};
        if (n_open_ == block_rows) settle_open();
    }

    // Takes a row that needs the exact engine.
    void send_to_float32(std::size_t i) { send(queue32_, i); }

    // Answers every row that is still open.
    void finish() {
        settle_open();
        settle_dense(queue32_);
        settle_sparse(queue32_);
        settle_dense(queue64_);
        settle_sparse(queue64_);
    }

  private:
    struct Open {
        std::size_t row;
        double value, extra;
    };

    // Piece k of the workspace.
    float* region(void* workspace, std::size_t k) const {
        return align_workspace(static_cast<unsigned char*>(workspace) + k * workspace_bytes(view_.n_features));
    }

    bool suffices(double value, double bound) const {
        return (view_.task == Task::regression || std::fabs(value) > bound) && bound <= view_.tolerance;
    }

    void settle(std::size_t i, double value, double bound, Stage stage) {
        if (out_.values) out_.values[i] = value;
        if (out_.bounds) out_.bounds[i] = bound;
        if (out_.stages) out_.stages[i] = stage;
        ++counts_[stage];
    }

    // --- the direction of a row

    void settle_open() {
        if (n_open_ == 0) return;
        const std::size_t n = n_open_;
        n_open_ = 0;
        float form[block_rows], sq_norm[block_rows];
        if (one_by_one_) {
            for (std::size_t r = 0; r < n; ++r) {
                source_.load(open_[r].row, view_.center, view_.input_scale, block_, 1);
                quadratic_row(view_.direction, prepared_.zeros, view_.n_features, block_, form[r], sq_norm[r]);
            }
        } else if (n > 2 * static_cast<std::size_t>(lanes)) {
            direction_forms<3>(n, form, sq_norm);
        } else if (n > static_cast<std::size_t>(lanes)) {
            direction_forms<2>(n, form, sq_norm);
        } else {
            direction_forms<1>(n, form, sq_norm);
        }
        for (std::size_t r = 0; r < n; ++r) {
            const float half_s = view_.half_theta * sq_norm[r];
            const double rest = static_cast<double>(prepared_.direction_table[cell_of(half_s)]);
            const double bound = rest + direction_bound(view_, form[r], half_s) + open_[r].extra;
            if (suffices(open_[r].value, bound)) {
                settle(open_[r].row, open_[r].value, bound, by_direction);
            } else {
                send_to_engine(open_[r].row, bound);
            }
        }
    }

    template <int Registers>
    void direction_forms(std::size_t n, float* form, float* sq_norm) {
        constexpr std::size_t stride = Registers * static_cast<std::size_t>(lanes);
        fill_lanes(
            n, stride,
            [&](std::size_t r) { source_.load(open_[r].row, view_.center, view_.input_scale, block_ + r, stride); },
            block_);
        quadratic_block<Registers>(view_.direction, prepared_.zeros, view_.n_features, block_, form, sq_norm);
    }

    // Loads n rows into lanes and zeros into the lanes left over.
    template <class Load, class Real>
    void fill_lanes(std::size_t n, std::size_t stride, const Load& load_row, Real* lanes_block) {
        for (std::size_t r = 0; r < n; ++r) load_row(r);
        for (std::size_t j = 0; j < view_.n_features; ++j) {
            for (std::size_t r = n; r < stride; ++r) lanes_block[j * stride + r] = Real{0};
        }
    }

    // --- the exact engine

    const ExactEngine<float>& engine(float) const { return prepared_.exact32; }
    const ExactEngine<double>& engine(double) const { return prepared_.exact64; }

    // float32 takes half the time of float64 and settles the rows whose value lies between its bound and the one
    // before: it pays where that is more than half of them.
    void send_to_engine(std::size_t i, double bound) {
        if (bound > 2.0 * prepared_.typical_float32_bound) return send(queue32_, i);
        send(queue64_, i);
    }

    template <class Real>
    void send(EngineQueue<Real>& queue, std::size_t i) {
        if (at_origin_ && add_sparse(queue, i)) return;
        queue.dense[queue.n_dense++] = i;
        if (queue.n_dense == queue.dense_capacity) settle_dense(queue);
    }

    // False for a row that is cheaper as a dense one: with more non-zeros than a third of its features.
    template <class Real>
    bool add_sparse(EngineQueue<Real>& queue, std::size_t i) {
        const std::size_t limit = view_.n_features / 3;
        if (queue.n_sparse == sparse_block_rows || queue.capacity - queue.starts[queue.n_sparse] < limit) {
            settle_sparse(queue);
        }
        const std::size_t r = queue.n_sparse, start = queue.starts[r];
        double unseen;
        const std::size_t n =
            source_.load_nonzeros(i, view_.input_scale, limit, queue.values + start, queue.columns + start, unseen);
        if (n > limit) return false;
        const Real seen = half_sq_norm_row(engine(Real{}).expansion, queue.values + start, n);
        queue.half_sq_norm[r] = seen + static_cast<Real>(view_.gamma * unseen);
        queue.sparse[r] = i;
        queue.starts[++queue.n_sparse] = start + n;
        return true;
    }

    template <class Real>
    void settle_sparse(EngineQueue<Real>& queue) {
        const std::size_t n = queue.n_sparse;
        queue.n_sparse = 0;
        double sum[sparse_block_rows], moduli[sparse_block_rows];
        kernel_sums_sparse(engine(Real{}).expansion, queue.values, queue.columns, queue.starts, n, queue.half_sq_norm,
                           sum, moduli);
        for (std::size_t r = 0; r < n; ++r) {
            const std::size_t n_nonzero = queue.starts[r + 1] - queue.starts[r];
            offer(queue.sparse[r], sum[r], moduli[r], queue.half_sq_norm[r], n_nonzero);
        }
    }

    template <class Real>
    void settle_dense(EngineQueue<Real>& queue) {
        const std::size_t n = queue.n_dense;
        if (n == 0) return;
        queue.n_dense = 0;
        const KernelExpansion<Real>& expansion = engine(Real{}).expansion;
        double sum[EngineQueue<Real>::dense_capacity], moduli[EngineQueue<Real>::dense_capacity];
        Real half_sq_norm[EngineQueue<Real>::dense_capacity];
        if (one_by_one_) {
            for (std::size_t r = 0; r < n; ++r)
                engine_row(expansion, queue.dense[r], sum[r], moduli[r], half_sq_norm[r]);
        } else if (n > 2 * static_cast<std::size_t>(lanes_of<Real>)) {
            engine_block<3>(expansion, queue.dense, n, sum, moduli, half_sq_norm);
        } else if (n > static_cast<std::size_t>(lanes_of<Real>)) {
            engine_block<2>(expansion, queue.dense, n, sum, moduli, half_sq_norm);
        } else {
            engine_block<1>(expansion, queue.dense, n, sum, moduli, half_sq_norm);
        }
        for (std::size_t r = 0; r < n; ++r) {
            offer(queue.dense[r], sum[r], moduli[r], half_sq_norm[r], view_.n_features);
        }
    }

    // Takes the sums of an engine.
    template <class Real>
    void offer(std::size_t i, double sum, double moduli, Real half_sq_norm, std::size_t n_terms) {
        constexpr bool narrow = sizeof(Real) == sizeof(float);
        const double value = sum + view_.intercept;
        const double bound = exact_bound(view_, engine(Real{}), moduli, static_cast<double>(half_sq_norm), n_terms);
        if (suffices(value, bound)) return settle(i, value, bound, narrow ? by_float32 : by_float64);
        if (narrow) return send(queue64_, i);
        settle_by_definition(i);
    }

    // The sums of n rows, one SIMD lane each.
    template <int Registers, class Real>
    void engine_block(const KernelExpansion<Real>& expansion, const std::size_t* rows, std::size_t n, double* sum,
                      double* moduli, Real* half_sq_norm) {
        constexpr std::size_t stride = Registers * static_cast<std::size_t>(lanes_of<Real>);
        Real* u = reinterpret_cast<Real*>(block_);
        double unseen[stride] = {};
        const auto load_row = [&](std::size_t r) {
            unseen[r] = source_.load(rows[r], prepared_.engine_center, view_.input_scale, u + r, stride);
        };
        fill_lanes(n, stride, load_row, u);
        half_sq_norms_block<Registers>(expansion, u, half_sq_norm);
        for (std::size_t r = 0; r < n; ++r) half_sq_norm[r] += static_cast<Real>(view_.gamma * unseen[r]);
        kernel_sums_block<Registers>(expansion, u, half_sq_norm, sum, moduli);
    }

    // The sums of one row.
    template <class Real>
    void engine_row(const KernelExpansion<Real>& expansion, std::size_t i, double& sum, double& moduli,
                    Real& half_sq_norm) {
        Real* u = reinterpret_cast<Real*>(block_);
        const double unseen = source_.load(i, prepared_.engine_center, view_.input_scale, u, 1);
        half_sq_norm = half_sq_norm_row(expansion, u, view_.n_features) + static_cast<Real>(view_.gamma * unseen);
        kernel_sums_row(expansion, u, half_sq_norm, sum, moduli);
    }

    // --- the definition

    void settle_by_definition(std::size_t i) {
        const std::size_t d = view_.n_features;
        double* z = reinterpret_cast<double*>(block_);
        double* x = z + d;
        const double unseen = source_.load(i, prepared_.zeros, 1.0, z, 1);
        SupportVectorReader reader(view_);
        double sum = 0.0, moduli = 0.0;
        for (std::size_t k = 0; k < view_.n_sv; ++k) {
            reader.next(x);
            double sq_distance = 0.0;
            for (std::size_t j = 0; j < d; ++j) sq_distance += (x[j] - z[j]) * (x[j] - z[j]);
            const double kernel = std::exp(-view_.gamma * (sq_distance + unseen));
            sum += view_.dual_coef[k] * kernel;
            moduli += std::fabs(view_.dual_coef[k]) * kernel;
        }
        settle(i, sum + view_.intercept, definition_bound(view_, moduli), by_definition);
    }

    const PreparedModel& prepared_;
    const ModelView& view_;
    const Source& source_;
    const Evaluation out_;
    std::uint64_t* counts_;
    float* block_;           // (n_features, block_rows) floats, or half as many doubles
    const bool one_by_one_;  // no blocks, for the lower latency of a few rows
    const bool at_origin_;
    std::size_t n_open_;
    Open open_[block_rows];
    EngineQueue<float> queue32_;
    EngineQueue<double> queue64_;
};

// --- first stages

// Dense rows through the expansion, block by block or, when they are few, one by one.
template <class Real>
inline Status expand_rows(Cascade<DenseSource<Real>>& cascade, const PreparedModel& prepared,
                          const DenseSource<Real>& source, bool one_by_one, float* scratch) {
    const ModelView& model = *prepared.view;
    const DenseRows<Real>& rows = source.rows();
    DenseRows<Real> part = rows;
    for (std::size_t first = 0; first < rows.n_rows; first += part.n_rows) {
        double values[block_rows];
        float half_s;
        const float* half_s_of = scratch + block_rows;  // where predict_block leaves them
        const std::size_t left = rows.n_rows - first;
        part.n_rows = one_by_one ? 1 : left < block_rows ? left : block_rows;
        part.values = rows.values + static_cast<std::ptrdiff_t>(first) * rows.row_stride;
        const std::size_t registers = (part.n_rows + lanes - 1) / lanes;
        Status status;
        if (one_by_one) {
            status = predict_row(model, part.values, rows.column_stride, scratch, values[0], half_s);
            half_s_of = &half_s;
        } else {
            status = registers == 3   ? predict_block<3>(model, part, scratch, values)
                     : registers == 2 ? predict_block<2>(model, part, scratch, values)
                                      : predict_block<1>(model, part, scratch, values);
        }
        if (status != Status::ok) return status;
        for (std::size_t r = 0; r < part.n_rows; ++r) cascade.offer_expansion(first + r, values[r], half_s_of[r], 0.0);
    }
    return Status::ok;
}

// Sparse rows through the expansion: by their non-zeros, or as dense ones where they are nearly dense.
template <class Real, class Index>
inline Status expand_rows(Cascade<CsrSource<Real, Index>>& cascade, const PreparedModel& prepared,
                          const CsrSource<Real, Index>& source, bool, float* scratch) {
    const ModelView& model = *prepared.view;
    const auto consume = [&](std::size_t i, double value, float half_s) {
        cascade.offer_expansion(i, value, half_s, 0.0);
    };
    PendingBlock<decltype(consume)> pending(model, scratch, consume);
    for (std::size_t i = 0; i < source.n_rows(); ++i) {
        SparseRow<Real, Index> row;
        const Status status = source.get(i, row);
        if (status != Status::ok) return status;
        if (row.unseen_sq_norm == 0.0 && worth_densifying(row.n_nonzero, model.n_features)) {
            pending.add(row, i);
            continue;
        }
        const SparseValue result = sparse_value(model, prepared.folded, row);
        const double extra = sparse_rounding_bound(model, prepared.folded, result, row.n_nonzero);
        cascade.offer_expansion(i, result.value, static_cast<float>(result.half_s), extra);
    }
    pending.flush();
    return Status::ok;
}

// Every row straight to the exact engine.
template <class Source>
inline Status engine_rows(Cascade<Source>& cascade, const Source& source) {
    for (std::size_t i = 0; i < source.n_rows(); ++i) {
        const Status status = source.check(i);
        if (status != Status::ok) return status;
        cascade.send_to_float32(i);
    }
    return Status::ok;
}

// --- everything together

// Evaluates all rows of a source. `counts[stage]` grows by the number of rows that each stage answered. `one_by_one` is
// for a few rows: lower latency, sums in another order.
template <class Source>
inline Status evaluate(const PreparedModel& prepared, const Source& source, bool one_by_one, const Evaluation& out,
                       std::uint64_t* counts, void* workspace) {
    float* scratch = align_workspace(workspace);
    Cascade<Source> cascade(prepared, source, out, counts, one_by_one, workspace);
    const Status status = prepared.view->mode == Mode::exact
                              ? engine_rows(cascade, source)
                              : expand_rows(cascade, prepared, source, one_by_one, scratch);
    if (status == Status::ok) cascade.finish();
    return status;
}

// The same for rows as callers have them.
template <class Real>
inline Status evaluate(const PreparedModel& prepared, const DenseRows<Real>& rows, const Evaluation& out,
                       void* workspace) {
    std::uint64_t counts[n_stages] = {};
    const DenseSource<Real> source(rows, prepared.view->n_features);
    return evaluate(prepared, source, rows.n_rows <= max_single_rows, out, counts, workspace);
}
template <class Real, class Index>
inline Status evaluate(const PreparedModel& prepared, const CsrRows<Real, Index>& rows, const Evaluation& out,
                       void* workspace) {
    std::uint64_t counts[n_stages] = {};
    const CsrSource<Real, Index> source(rows, prepared.view->n_features);
    return evaluate(prepared, source, rows.n_rows <= max_single_rows, out, counts, workspace);
}

// f(z) of one row by the exact engine in float64.
inline double exact_value(const PreparedModel& prepared, const float* row, void* workspace) {
    const ModelView& model = *prepared.view;
    double* u = reinterpret_cast<double*>(align_workspace(workspace));
    const DenseSource<float> source(DenseRows<float>{row, 1, 0, 1}, model.n_features);
    source.load(0, prepared.engine_center, model.input_scale, u, 1);
    const KernelExpansion<double>& expansion = prepared.exact64.expansion;
    double sum, moduli;
    kernel_sums_row(expansion, u, half_sq_norm_row(expansion, u, model.n_features), sum, moduli);
    return sum + model.intercept;
}

// Replays the exact check rows: alone and in a block, each answer within its own bound of the stored value, and the
// exact engine by itself.
constexpr std::size_t exact_replay_bytes(std::size_t n_features) {
    return evaluation_workspace_bytes(n_features) + n_features * sizeof(float) + 64;
}
inline Status replay_exact_check_rows(const PreparedModel& prepared, void* memory) {
    const ModelView& model = *prepared.view;
    float* row = align_workspace(static_cast<unsigned char*>(memory) + evaluation_workspace_bytes(model.n_features));
    for (std::uint32_t k = 0; k < model.n_exact_check_rows; ++k) {
        make_check_row(model, model.exact_check_rows, k, row);
        const double expected = read_at<double>(model.exact_check_rows, k * check_row_bytes + 8);
        const double tolerance = read_at<double>(model.exact_check_rows, k * check_row_bytes + 16);
        constexpr std::size_t batches[] = {1, block_rows};
        for (const std::size_t n_rows : batches) {
            double values[block_rows], bounds[block_rows];
            std::uint64_t counts[n_stages] = {};
            const DenseSource<float> source(DenseRows<float>{row, n_rows, 0, 1}, model.n_features);
            if (evaluate(prepared, source, n_rows == 1, {values, bounds, nullptr}, counts, memory) != Status::ok) {
                return Status::check_row_mismatch;
            }
            for (std::size_t i = 0; i < n_rows; ++i) {
                if (!(std::fabs(values[i] - expected) <= bounds[i] + tolerance)) return Status::check_row_mismatch;
            }
        }
        if (!(std::fabs(exact_value(prepared, row, memory) - expected) <= tolerance)) return Status::check_row_mismatch;
    }
    return Status::ok;
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm
