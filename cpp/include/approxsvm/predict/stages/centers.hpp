// Assigns rows to nearby centers. Rows assigned to a center are collected until they fill a block, then loaded with the
// center subtracted.
#ifndef APPROXSVM_PREDICT_STAGES_CENTERS_HPP
#define APPROXSVM_PREDICT_STAGES_CENTERS_HPP

#include "../prepare/thread_memory.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Loads n rows relative to a center, keeping the varying features.
template <int Registers>
inline void load_around(const Job& job, const std::size_t* rows, std::size_t n, const float* center, float* u,
                        double* unseen, float* off_sq) {
    if constexpr (Registers > 0)
        job.source.load_block(Registers, rows, n, center, job.view.input_scale, u, unseen);
    else
        *unseen = job.source.load_one(*rows, center, job.view.input_scale, u);
    keep_varying<Registers>(job.view, u, off_sq);
}

// The squared norm of the features unknown to the model, and the squared scaled distance from the slice; neither is
// part of the coordinates u.
struct OutsideNorms {
    const double* unseen;
    const float* off_sq;
};

// The rows assigned to one center. They are collected until they fill a block, then evaluated together or one by one.
template <class Cascade>
class Gatherer {
  public:
    Gatherer(Cascade& cascade, const Job& job) : cascade_(cascade), job_(job) {}

    Status add(std::size_t i) { return waiting_.add(i) ? flush() : Status::ok; }
    Status flush() {
        const std::size_t n = waiting_.take();
        Status status = Status::ok;
        if (n > 0 && !job_.batch.alone_in_expansion(n)) {
            with_registers_for<has(Cascade::list, batches)>(
                n, lanes, [&](auto registers) { status = take<registers.value>(waiting_.rows, n); });
            return status;
        }
        for (std::size_t r = 0; r < n && status == Status::ok; ++r) status = take<0>(waiting_.rows + r, 1);
        return status;
    }

  private:
    template <int Registers>
    Status take(const std::size_t* rows, std::size_t n) {
        float* const u = job_.memory.first_block;
        double unseen[rows_in<Registers>];
        float off_sq[rows_in<Registers>] = {};  // zeros: compilers cannot see that only written elements are read
        load_around<Registers>(job_, rows, n, cascade_.center(), u, unseen, off_sq);
        for (std::size_t r = 0; r < n; ++r) {  // coordinates outside the slice may also be NaN or infinite
            const Status status = off_sq[r] <= largest_float ? Status::ok : job_.source.check(rows[r]);
            if (status != Status::ok) return status;
        }
        return cascade_.template take<Registers>(rows, n, u, {unseen, off_sq});
    }

    Cascade& cascade_;
    const Job& job_;
    RowQueue<block_rows> waiting_;
};

// Orders the source's rows [first, first + n) by their centers; indices count from `first`. Until then, `center_of`
// holds the index of each row's group.
struct Routing {
    std::uint32_t *center_of, *order, *counts;

    // Routes at most n_rows rows at a time.
    Routing(std::uint32_t* memory, std::size_t n_rows)
        : center_of(memory), order(center_of + n_rows), counts(order + n_rows) {}

    // Processes up to `Together` rows at a time, for which `y` must have space. If only labels are wanted, a row that
    // would be routed alone within its group uses the code for single rows. If two centers are about equally near, that
    // code may find the other one.
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

    // Returns the end of the run of ordered rows, beginning at `begin`, that share a center or group.
    std::size_t end_of_run(std::size_t begin, std::size_t n) const {
        std::size_t end = begin + 1;
        while (end < n && center_of[order[end]] == center_of[order[begin]]) ++end;
        return end;
    }

  private:
    // Loads the rows order[k] ... order[end - 1], at most `Together` of them, and returns their number. The unused part
    // of `y` is unchanged.
    template <std::size_t Together>
    std::size_t load(const ModelView& model, const RowSource& source, std::size_t first, std::size_t k, std::size_t end,
                     float* y) const {
        const std::size_t m = end - k < Together ? end - k : Together;
        for (std::size_t r = 0; r < m; ++r) {
            source.load_one(first + order[k + r], model.center, model.input_scale, y + r * model.n_features);
        }
        return m;
    }

    // Sorts the rows stably by center_of. Insertion sort is used for few rows, because counting visits all centers.
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

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif
