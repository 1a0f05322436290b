// evaluate(): rows in, values with bounds out. Each row goes to a center near it, the rows of a center go through its
// expansion together, and what that leaves open goes down the cascade.
#pragma once

#include "cascade.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// --- rows of one center

// The factor that features unknown to the model add to the Gaussian.
inline void add_unseen(const ModelView& model, const Expansion& expansion, double unseen_sq_norm, Value& value) {
    if (unseen_sq_norm == 0.0) return;
    value.half_s += static_cast<float>(model.gamma * unseen_sq_norm);
    value.gaussian = value.half_s <= -exp_min_argument
                         ? expansion.numbers->output_scale * std::exp(-static_cast<double>(value.half_s))
                         : 0.0;
}

template <int Registers, class Source>
inline Status expand_block(Cascade<Source>& cascade, const ModelView& model, const Source& source,
                           const std::size_t* rows, std::size_t n, float* scratch) {
    float* block = scratch + 4 * block_rows;
    double unseen[block_rows];
    Value values[block_rows];
    const Expansion& expansion = cascade.expansion();
    source.template load_block<Registers>(rows, n, expansion.center, model.input_scale, block, unseen);
    const bool finite = evaluate_block<Registers>(model, expansion, block, scratch, n, values);
    for (std::size_t r = 0; r < n; ++r) {
        if (!finite) {  // an overflow is legitimate, NaN and infinity are not
            const Status status = source.check(rows[r]);
            if (status != Status::ok) return status;
        }
        add_unseen(model, expansion, unseen[r], values[r]);
        cascade.offer_expansion(rows[r], values[r], 0.0);
    }
    return Status::ok;
}

// Up to block_rows rows, side by side or one by one.
template <class Source>
inline Status expand_some(Cascade<Source>& cascade, const ModelView& model, const Source& source,
                          const std::size_t* rows, std::size_t n, bool rows_alone, float* scratch) {
    constexpr std::size_t width = lanes;
    if (!rows_alone) {
        return n > 2 * width ? expand_block<3>(cascade, model, source, rows, n, scratch)
               : n > width   ? expand_block<2>(cascade, model, source, rows, n, scratch)
                             : expand_block<1>(cascade, model, source, rows, n, scratch);
    }
    float* u = scratch + 4 * block_rows;
    const Expansion& expansion = cascade.expansion();
    for (std::size_t r = 0; r < n; ++r) {
        const double unseen = source.load_one(rows[r], expansion.center, model.input_scale, u);
        Value value = evaluate_row(model, expansion, u);
        if (!(value.half_s <= largest_float)) {
            const Status status = source.check(rows[r]);
            if (status != Status::ok) return status;
        }
        add_unseen(model, expansion, unseen, value);
        cascade.offer_expansion(rows[r], value, 0.0);
    }
    return Status::ok;
}

// Rows that come one after the other, taken together as soon as they fill a block.
template <class Source>
class Gatherer {
  public:
    Gatherer(Cascade<Source>& cascade, const ModelView& model, const Source& source, bool rows_alone, float* scratch)
        : cascade_(cascade), model_(model), source_(source), rows_alone_(rows_alone), scratch_(scratch) {}

    Status add(std::size_t i) {
        rows_[n_++] = i;
        return n_ == block_rows ? flush() : Status::ok;
    }
    Status flush() {
        const std::size_t n = n_;
        n_ = 0;
        return n == 0 ? Status::ok : expand_some(cascade_, model_, source_, rows_, n, rows_alone_, scratch_);
    }

  private:
    Cascade<Source>& cascade_;
    const ModelView& model_;
    const Source& source_;
    const bool rows_alone_;
    float* const scratch_;
    std::size_t n_ = 0;
    std::size_t rows_[block_rows];
};

// --- one center

// True when a sparse row has been dealt with by its non-zeros; dense rows never are.
template <class Real>
inline bool expand_sparse(Cascade<DenseSource<Real>>&, const PreparedModel&, const DenseSource<Real>&, std::size_t,
                          Status&) {
    return false;
}
template <class Real, class Index>
inline bool expand_sparse(Cascade<CsrSource<Real, Index>>& cascade, const PreparedModel& prepared,
                          const CsrSource<Real, Index>& source, std::size_t i, Status& status) {
    const ModelView& model = *prepared.view;
    SparseRow<Real, Index> row;
    status = source.get(i, row);
    if (status != Status::ok) return false;
    if (row.unseen_sq_norm == 0.0 && worth_densifying(row.n_nonzero, model.n_features)) return false;
    const SparseValue result = sparse_value(model, prepared.folded, row);
    cascade.offer_expansion(i, result.value, sparse_rounding_bound(model, prepared.folded, result, row.n_nonzero));
    return true;
}

template <class Source>
inline Status expand_about_one(Cascade<Source>& cascade, const PreparedModel& prepared, const Source& source,
                               const Batch& batch, void* workspace) {
    Gatherer<Source> gatherer(cascade, *prepared.view, source, batch.rows_alone, align_workspace(workspace));
    cascade.begin_center(0);
    for (std::size_t i = 0; i < source.n_rows(); ++i) {
        Status status = Status::ok;
        if (expand_sparse(cascade, prepared, source, i, status)) continue;
        if (status == Status::ok) status = gatherer.add(i);
        if (status != Status::ok) return status;
    }
    return gatherer.flush();
}

// --- many centers

// Rows [first, first + n) of the source in the order of their centers: those of center c are order[starts[c]] ...
// order[starts[c + 1] - 1], counted from `first`. On the way there `center_of` holds their groups.
struct Routing {
    std::uint32_t *center_of, *order, *starts;

    Routing(void* workspace, std::size_t n_features)
        : center_of(reinterpret_cast<std::uint32_t*>(
              align_workspace(static_cast<unsigned char*>(workspace) + 4 * workspace_bytes(n_features)))),
          order(center_of + route_rows),
          starts(order + route_rows) {}

    // `y` is room for routed_rows rows.
    template <class Source>
    Status fill(const ModelView& model, const Source& source, std::size_t first, std::size_t n, float* y) {
        for (std::size_t i = 0; i < n; ++i) {
            const Status status = source.check_order(first + i);
            if (status != Status::ok) return status;
            order[i] = static_cast<std::uint32_t>(i);
        }
        const std::size_t stride = model.n_features;
        std::size_t found[routed_rows];
        for (std::size_t k = 0; k < n; k += routed_rows) {
            const std::size_t m = load(model, source, first, k, n, y);
            route_to_groups(model, y, stride, found);
            for (std::size_t r = 0; r < m; ++r) center_of[k + r] = static_cast<std::uint32_t>(found[r]);
        }
        sort(n, model.router.n_groups);
        for (std::size_t g = 0; g < model.router.n_groups; ++g) {
            const std::size_t end = starts[g + 1];
            for (std::size_t k = starts[g]; k < end; k += routed_rows) {
                const std::size_t m = load(model, source, first, k, end, y);
                route_in_group(model, g, y, stride, found);
                for (std::size_t r = 0; r < m; ++r) center_of[order[k + r]] = static_cast<std::uint32_t>(found[r]);
            }
        }
        sort(n, model.n_centers);
        return Status::ok;
    }

  private:
    // The rows order[k] ... order[end - 1], at most routed_rows of them; returns their number. What is left over of
    // `y` keeps what it held.
    template <class Source>
    std::size_t load(const ModelView& model, const Source& source, std::size_t first, std::size_t k, std::size_t end,
                     float* y) const {
        const std::size_t m = end - k < routed_rows ? end - k : routed_rows;
        for (std::size_t r = 0; r < m; ++r) {
            source.load_one(first + order[k + r], model.center, model.input_scale, y + r * model.n_features);
        }
        return m;
    }

    // Counts and then sorts the rows by center_of, each kind in ascending order.
    void sort(std::size_t n, std::size_t n_kinds) {
        for (std::size_t c = 0; c <= n_kinds; ++c) starts[c] = 0;
        for (std::size_t i = 0; i < n; ++i) ++starts[center_of[i]];
        std::uint32_t end = 0;
        for (std::size_t c = 0; c <= n_kinds; ++c) starts[c] = end += starts[c];
        for (std::size_t i = n; i-- > 0;) order[--starts[center_of[i]]] = static_cast<std::uint32_t>(i);
    }
};

template <class Source>
inline Status expand_about_many(Cascade<Source>& cascade, const PreparedModel& prepared, const Source& source,
                                const Batch& batch, void* workspace) {
    const ModelView& model = *prepared.view;
    float* scratch = align_workspace(workspace);
    Gatherer<Source> gatherer(cascade, model, source, batch.rows_alone, scratch);
    Routing routing(workspace, model.n_features);
    for (std::size_t first = 0; first < source.n_rows(); first += route_rows) {
        const std::size_t left = source.n_rows() - first, n = left < route_rows ? left : route_rows;
        Status status = routing.fill(model, source, first, n, scratch + 4 * block_rows);
        for (std::size_t c = 0; c < model.n_centers && status == Status::ok; ++c) {
            const std::uint32_t begin = routing.starts[c], end = routing.starts[c + 1];
            if (begin == end) continue;
            cascade.begin_center(c);
            for (std::uint32_t k = begin; k < end && status == Status::ok; ++k) {
                status = gatherer.add(first + routing.order[k]);
            }
            if (status == Status::ok) status = gatherer.flush();
        }
        if (status != Status::ok) return status;
    }
    return Status::ok;
}

// --- no expansion

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

// Evaluates all rows of a source, which may be a part of what was asked for in one call: `batch` was decided for all of
// it. `counts[stage]` grows by the number of rows that each stage answered.
template <class Source>
inline Status evaluate(const PreparedModel& prepared, const Source& source, const Batch& batch, const Evaluation& out,
                       std::uint64_t* counts, void* workspace) {
    Cascade<Source> cascade(prepared, source, out, counts, batch, workspace);
    const ModelView& model = *prepared.view;
    const Status status = model.n_centers == 0   ? engine_rows(cascade, source)
                          : model.n_centers == 1 ? expand_about_one(cascade, prepared, source, batch, workspace)
                                                 : expand_about_many(cascade, prepared, source, batch, workspace);
    if (status == Status::ok) cascade.finish();
    return status;
}

// The same for rows as callers have them.
template <class Real>
inline Status evaluate(const PreparedModel& prepared, const DenseRows<Real>& rows, const Evaluation& out,
                       void* workspace) {
    std::uint64_t counts[n_stages] = {};
    const DenseSource<Real> source(rows, prepared.view->n_features);
    return evaluate(prepared, source, batch_of(*prepared.view, rows.n_rows), out, counts, workspace);
}
template <class Real, class Index>
inline Status evaluate(const PreparedModel& prepared, const CsrRows<Real, Index>& rows, const Evaluation& out,
                       void* workspace) {
    std::uint64_t counts[n_stages] = {};
    const CsrSource<Real, Index> source(rows, prepared.view->n_features);
    return evaluate(prepared, source, batch_of(*prepared.view, rows.n_rows), out, counts, workspace);
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
    return sum + model.decisions[0].intercept;
}

// Replays the exact check rows: alone and in a block, each answer within its own bound of the stored value, and the
// exact engine by itself.
inline std::size_t exact_replay_bytes(const ModelView& model) {
    return evaluation_workspace_bytes(model) + model.n_features * sizeof(float) + 64;
}
inline Status replay_exact_check_rows(const PreparedModel& prepared, void* memory) {
    const ModelView& model = *prepared.view;
    float* row = align_workspace(static_cast<unsigned char*>(memory) + evaluation_workspace_bytes(model));
    for (std::uint32_t k = 0; k < model.n_exact_check_rows; ++k) {
        make_check_row(model, model.center, model.exact_check_rows, k, row);
        const double expected = read_at<double>(model.exact_check_rows, k * check_row_bytes + 8);
        const double tolerance = read_at<double>(model.exact_check_rows, k * check_row_bytes + 16);
        constexpr std::size_t batches[] = {1, block_rows};
        for (const std::size_t n_rows : batches) {
            double values[block_rows], bounds[block_rows];
            std::uint64_t counts[n_stages] = {};
            const DenseSource<float> source(DenseRows<float>{row, n_rows, 0, 1}, model.n_features);
            const Batch batch{n_rows == 1, n_rows == 1};
            if (evaluate(prepared, source, batch, {values, bounds, nullptr}, counts, memory) != Status::ok) {
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
