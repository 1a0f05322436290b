// Evaluates rows with a Gaussian kernel: each row is assigned to a nearby center, and all rows assigned to a center are
// evaluated together by its expansion. Rows that remain undecided are sent to further stages.
#ifndef APPROXSVM_PREDICT_KERNELS_GAUSSIAN_HPP
#define APPROXSVM_PREDICT_KERNELS_GAUSSIAN_HPP

#include "../stages/one_function.hpp"
#include "../stages/pairs_of_classes.hpp"
#include "../stages/several_functions.hpp"
#include "sums_of_terms.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// --- one center

// If possible, evaluates a sparse row by its nonzeros and returns true. This is never possible for dense rows or for
// models with several decision functions.
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
        float* const y = job.memory.first_block;
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

// --- one function, several functions, or pairs of classes

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

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif
