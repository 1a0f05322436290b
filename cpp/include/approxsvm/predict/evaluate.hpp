// Takes rows in the kernel's coordinates and computes values with bounds. Each row is assigned to a near center. The
// rows of a center go through its expansion together, and undecided rows go down the cascade.
#ifndef APPROXSVM_PREDICT_EVALUATE_HPP
#define APPROXSVM_PREDICT_EVALUATE_HPP

#include "cascade.hpp"
#include "class_cascade.hpp"
#include "polynomial_evaluator.hpp"
#include "several_cascade.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// --- the rows of one center

// Rows of one center, collected until they fill a block, then evaluated together or one by one.
template <class Cascade>
class Gatherer {
  public:
    Gatherer(Cascade& cascade, const Job& job)
        : cascade_(cascade), job_(job), model_(job.view), scratch_(job.memory.first_block) {}

    Status add(std::size_t i) { return waiting_.add(i) ? flush() : Status::ok; }
    Status flush() {
        const std::size_t n = waiting_.take();
        if (n == 0) return Status::ok;
        if (job_.batch.alone_in_expansion(n)) return take_rows(n);
        Status status = Status::ok;
        with_registers_for<has(Cascade::list, batches)>(
            n, lanes, [&](auto registers) { status = take_block<registers.value>(n); });
        return status;
    }

  private:
    template <int Registers>
    Status take_block(std::size_t n) {
        float* block = scratch_ + 4 * block_rows;
        double unseen[block_rows];
        float off_sq[block_rows] = {};  // initialized because compilers cannot tell that only written elements are read
        job_.source.load_block(Registers, waiting_.rows, n, cascade_.center(), model_.input_scale, block, unseen);
        keep_varying_block<Registers>(model_, block, off_sq);
        for (std::size_t r = 0; r < n; ++r) {
            const Status status = check(waiting_.rows[r], off_sq[r]);
            if (status != Status::ok) return status;
        }
        return cascade_.template take_block<Registers>(waiting_.rows, n, block, {unseen, off_sq}, scratch_);
    }
    Status take_rows(std::size_t n) {
        float* u = scratch_ + 4 * block_rows;
        for (std::size_t r = 0; r < n; ++r) {
            const double unseen = job_.source.load_one(waiting_.rows[r], cascade_.center(), model_.input_scale, u);
            const float off_sq = keep_varying_row(model_, u);
            Status status = check(waiting_.rows[r], off_sq);
            if (status == Status::ok) status = cascade_.take_row(waiting_.rows[r], u, {&unseen, &off_sq});
            if (status != Status::ok) return status;
        }
        return Status::ok;
    }
    // Coordinates off the slice may also be NaN or infinite.
    Status check(std::size_t i, float off_sq) const {
        return off_sq <= largest_float ? Status::ok : job_.source.check(i);
    }

    Cascade& cascade_;
    const Job& job_;
    const ModelView& model_;
    float* const scratch_;
    RowQueue<block_rows> waiting_;
};

// --- one center

// True if a sparse row has been evaluated by its non-zeros. This never happens to dense rows, or with several classes.
template <class AnyCascade>
inline bool expand_sparse(AnyCascade&, const Job& job, std::size_t i, Status& status) {
    status = job.source.check_order(i);
    return false;
}
template <Parts parts>
inline bool expand_sparse(Cascade<parts>& cascade, const Job& job, std::size_t i, Status& status) {
    if (!has(parts, sparse) || !job.source.is_sparse()) return false;
    SparseValue result;
    std::size_t n_nonzero;
    const FoldedModel& folded = job.prepared.folded;
    status = job.source.sparse_value_of(i, job.view, folded, result, n_nonzero);
    if (n_nonzero == RowSource::none_evaluated) return false;
    cascade.offer_expansion(i, result.value, sparse_rounding_bound(job.view, folded, result, n_nonzero));
    return true;
}

template <class AnyCascade>
inline Status expand_about_one(AnyCascade& cascade, const Job& job, std::size_t center = 0) {
    Gatherer<AnyCascade> gatherer(cascade, job);
    cascade.begin_center(center);
    for (std::size_t i = 0; i < job.source.n_rows(); ++i) {
        Status status = Status::ok;
        if (expand_sparse(cascade, job, i, status)) continue;
        if (status == Status::ok) status = gatherer.add(i);
        if (status != Status::ok) return status;
    }
    return gatherer.flush();
}

// --- many centers

// Orders the rows [first, first + n) of the source by their centers, counted from `first`. Meanwhile, `center_of` holds
// their groups.
struct Routing {
    std::uint32_t *center_of, *order, *counts;

    // Routes at most n_rows rows at a time.
    Routing(std::uint32_t* memory, std::size_t n_rows)
        : center_of(memory), order(center_of + n_rows), counts(order + n_rows) {}

    // Processes up to `capacity` rows at a time; `y` has space for them. If only labels are wanted, a single row of a
    // group is routed alone. If two centers are about equally near, that may choose the other one.
    template <std::size_t Together>
    Status fill(const ModelView& model, const RowSource& source, std::size_t first, std::size_t n, bool labels_only,
                float* y) {
        constexpr int rows = static_cast<int>(Together);
        for (std::size_t i = 0; i < n; ++i) {
            const Status status = source.check_order(first + i);
            if (status != Status::ok) return status;
            order[i] = static_cast<std::uint32_t>(i);
        }
        const std::size_t stride = model.n_features;
        std::size_t found[Together];
        for (std::size_t k = 0; k < n; k += Together) {
            const std::size_t m = load<Together>(model, source, first, k, n, y);
            route_to_groups<rows>(model, y, stride, m, found);
            for (std::size_t r = 0; r < m; ++r) center_of[k + r] = static_cast<std::uint32_t>(found[r]);
        }
        sort(n, model.router.n_groups);
        for (std::size_t begin = 0, end; begin < n; begin = end) {
            const std::size_t group = center_of[order[begin]];
            end = end_of_run(begin, n);
            for (std::size_t k = begin; k < end; k += Together) {
                const std::size_t m = load<Together>(model, source, first, k, end, y);
                if (m == 1 && labels_only)
                    route_in_group<1>(model, group, y, stride, m, found);
                else
                    route_in_group<rows>(model, group, y, stride, m, found);
                for (std::size_t r = 0; r < m; ++r) center_of[order[k + r]] = static_cast<std::uint32_t>(found[r]);
            }
        }
        sort(n, model.n_centers);
        return Status::ok;
    }

    // Returns the end of the run of rows in order that begins at `begin` and shares a center or group.
    std::size_t end_of_run(std::size_t begin, std::size_t n) const {
        std::size_t end = begin + 1;
        while (end < n && center_of[order[end]] == center_of[order[begin]]) ++end;
        return end;
    }

  private:
    // Loads the rows order[k] ... order[end - 1], at most `capacity` of them; returns their number. The unused part of
    // `y` keeps its contents.
    template <std::size_t Together>
    std::size_t load(const ModelView& model, const RowSource& source, std::size_t first, std::size_t k, std::size_t end,
                     float* y) const {
        const std::size_t m = end - k < Together ? end - k : Together;
        for (std::size_t r = 0; r < m; ++r) {
            source.load_one(first + order[k + r], model.center, model.input_scale, y + r * model.n_features);
        }
        return m;
    }

    // Sorts the rows by center_of, stably: few rows by insertion, because counting looks at all centers.
    void sort(std::size_t n, std::size_t n_places) {
        if (n <= few_rows) {
            for (std::size_t i = 0; i < n; ++i) {
                std::size_t k = i;
                for (; k > 0 && center_of[order[k - 1]] > center_of[i]; --k) order[k] = order[k - 1];
                order[k] = static_cast<std::uint32_t>(i);
            }
            return;
        }
        for (std::size_t c = 0; c <= n_places; ++c) counts[c] = 0;
        for (std::size_t i = 0; i < n; ++i) ++counts[center_of[i]];
        std::uint32_t end = 0;
        for (std::size_t c = 0; c <= n_places; ++c) counts[c] = end += counts[c];
        for (std::size_t i = n; i-- > 0;) order[--counts[center_of[i]]] = static_cast<std::uint32_t>(i);
    }
    static constexpr std::size_t few_rows = 16;
};

template <class AnyCascade>
inline Status expand_about_many(AnyCascade& cascade, const Job& job) {
    const ModelView& model = job.view;
    const RowSource& source = job.source;
    const Batch& batch = job.batch;
    Gatherer<AnyCascade> gatherer(cascade, job);
    const std::size_t n_rows = source.n_rows(), n_routed = n_rows < route_rows ? n_rows : route_rows;
    Routing routing(job.memory.routing, n_routed);
    const bool labels_only = batch.goes_by_queue;
    for (std::size_t first = 0; first < n_rows; first += n_routed) {
        const std::size_t left = n_rows - first, n = left < n_routed ? left : n_routed;
        float* const y = job.memory.first_block + 4 * block_rows;
        constexpr std::size_t together = has(AnyCascade::list, batches) ? routed_rows : 1;
        Status status = batch.engines_alone ? routing.fill<1>(model, source, first, n, labels_only, y)
                                            : routing.fill<together>(model, source, first, n, labels_only, y);
        for (std::size_t begin = 0, end; begin < n && status == Status::ok; begin = end) {
            end = routing.end_of_run(begin, n);
            cascade.begin_center(routing.center_of[routing.order[begin]]);
            for (std::size_t k = begin; k < end && status == Status::ok; ++k) {
                status = gatherer.add(first + routing.order[k]);
            }
            if (status == Status::ok) status = gatherer.flush();
        }
        if (status != Status::ok) return status;
    }
    return Status::ok;
}

// --- all centers

template <class AnyCascade>
inline Status evaluate_with(AnyCascade& cascade, const Job& job) {
    if (job.view.n_centers == 0 || job.is_exact() || !cascade.expands()) return engine_rows(cascade, job);
    const Status status = job.view.n_centers == 1 ? expand_about_one(cascade, job) : expand_about_many(cascade, job);
    return status == Status::ok ? cascade.finish() : status;
}

// --- kinds of kernels

// Calls call(cascade) for a Gaussian kernel; the cascade depends on the number of functions.
template <Parts parts, class Call>
inline Status with_cascade(const Job& job, const Call& call) {
    if constexpr (has(parts, several_functions)) {
        if (has_several(job.view)) {
            SeveralCascade<parts> cascade(job);
            return call(cascade);
        }
    }
    if constexpr (has(parts, one_vs_one)) {
        if (has_classes(job.view)) {
            ClassCascade<parts> cascade(job);
            return call(cascade);
        }
    }
    Cascade<parts> cascade(job);
    return call(cascade);
}

template <>
struct EvaluatorOf<GaussianKernels> {
    template <Parts parts>
    static Status evaluate(const Job& job) {
        return with_cascade<parts>(job, [&](auto& cascade) { return evaluate_with(cascade, job); });
    }
    static bool feels_error(const PreparedModel& prepared, double error, const double*) {
        return is_felt(prepared, error * prepared.slope);
    }
};

// Evaluates all rows of a mapped source: values, bounds, stages, labels by votes. `counts[stage]` grows by the number
// of rows that each stage answered. The memory must suffice for as many rows as the request says the call has.
template <Parts parts = all_parts>
inline Status evaluate_source(const PreparedModel& prepared, const RowSource& source, const Request& request,
                              const Evaluation& out, std::uint64_t* counts, const EvaluationMemory& memory) {
    const ModelView& model = *prepared.view;
    const bool labels_only =
        !wants_values(out) && !out.stages && model.task != Task::regression && model.mode != Mode::approximate;
    const Batch batch = batch_of<parts>(model, request.n_rows_in_call, labels_only);
    const Job job{prepared, model, source, request, out, counts, batch, memory};
    return with_kind<parts>(model,
                            [&](auto kind) { return EvaluatorOf<decltype(kind)>::template evaluate<parts>(job); });
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif
