// A compiled model as programs use it: raw rows in; labels, values, probabilities and what bounds them out. The object
// allocates nothing: it points to the artifact's bytes and to memory that the caller lends.
#pragma once

#include "answers.hpp"
#include "artifact.hpp"
#include "labels.hpp"
#include "predict.hpp"
#include "replay.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// --- raw rows as callers have them

// Sparse rows that lie within their arrays.
template <class Real, class Index>
inline Status check_row_starts(const SparseRows<Real, Index>& rows, CsrRows<Real, Index>& checked) {
    const std::size_t n_starts = rows.row_starts.size;
    const std::size_t end = rows.values.size < rows.columns.size ? rows.values.size : rows.columns.size;
    std::int64_t last = 0;
    for (std::size_t k = 0; k < n_starts; ++k) {
        const std::int64_t start = static_cast<std::int64_t>(rows.row_starts[k]);
        if (start < last) return Status::bad_row_starts;
        last = start;
    }
    if (n_starts == 0 || static_cast<std::uint64_t>(last) > end) return Status::bad_row_starts;
    checked = {rows.values.data, rows.columns.data, rows.row_starts.data, n_starts - 1};
    return Status::ok;
}

// with_source(rows, model, call): what call(RowSource) returns.
template <class Real, class Call>
inline Status with_source(const DenseRows<Real>& rows, const ModelView& model, const Call& call) {
    return call(DenseSource<Real>(rows, model.n_raw_features));
}
template <class Real, class Index, class Call>
inline Status with_source(const CsrRows<Real, Index>& rows, const ModelView& model, const Call& call) {
    return call(CsrSource<Real, Index>(rows, model.n_raw_features));
}
template <class Real, class Index, class Call>
inline Status with_source(const SparseRows<Real, Index>& rows, const ModelView& model, const Call& call) {
    CsrRows<Real, Index> checked;
    const Status status = check_row_starts(rows, checked);
    return status == Status::ok ? with_source(checked, model, call) : status;
}
template <class Real, class Call>
inline Status with_whole_rows(Span<const Real> numbers, const ModelView& model, const Call& call) {
    DenseRows<Real> rows;
    const Status status = whole_rows(model, numbers, rows);
    return status == Status::ok ? with_source(rows, model, call) : status;
}
template <class Call>
inline Status with_source(Span<const float> numbers, const ModelView& model, const Call& call) {
    return with_whole_rows(numbers, model, call);
}
template <class Call>
inline Status with_source(Span<const double> numbers, const ModelView& model, const Call& call) {
    return with_whole_rows(numbers, model, call);
}

// Opened, then prepared, then asked, by any number of threads at once if each has a workspace of its own. What is
// called too early gives a status. A copy shares bytes and memory, which must outlive it.
//
// `rows` are numbers one after the other, n_features() for each row (anything that turns into a Span<const float> or
// Span<const double>), SparseRows, or DenseRows and CsrRows, whose extent the caller answers for. A feature of a sparse
// row that the model does not know counts as in LIBSVM, but is Status::unknown_feature for a pipeline.
//
// Buffers may be larger than needed; one that is too small is refused before anything is written. After an error, what
// has been written is worth nothing; the Fault, where one is given, then says which row it was, if it was one.
class Model {
  public:
    Model() = default;

    // Validates an artifact: every byte of it is checked. The bytes must begin at a multiple of 8.
    Status open(Span<const unsigned char> bytes) {
        *this = Model();
        ModelView view{};
        const Status status = open_artifact(bytes.data, bytes.size, view);
        if (status == Status::ok) view_ = view;
        return status;
    }

    // Bytes that prepare() needs, at any address; 0 before open().
    std::size_t memory_bytes() const {
        if (!is_open()) return 0;
        Carver counter(nullptr);
        const Memory memory(view_, counter);
        return counter.used(nullptr) + 64;
    }

    // Lays the model out for this machine.
    Status prepare(Span<unsigned char> memory) {
        prepared_ = nullptr;
        if (!is_open()) return Status::not_open;
        if (!memory || memory.size < memory_bytes()) return Status::buffer_too_small;
        Carver carver(memory.data);
        const Memory pieces(view_, carver);
        const ModelView& view = *new (pieces.view) ModelView(view_);
        return approxsvm::prepare(view, {pieces.prepared, prepared_bytes(view)}, prepared_);
    }

    // Whether this machine computes what the writer of the artifact meant, in a workspace of replay_bytes(): once, if
    // at all.
    std::size_t replay_bytes() const { return prepared_ ? approxsvm::replay_bytes(*prepared_) : 0; }
    Status replay(Span<unsigned char> workspace) const {
        if (!prepared_) return unprepared();
        if (workspace.size < replay_bytes()) return Status::buffer_too_small;
        return approxsvm::replay(*prepared_, workspace.data);
    }

    // --- what it is; all zero before open()

    Task task() const { return view_.task; }
    Mode mode() const { return view_.mode; }
    std::size_t n_features() const { return view_.n_raw_features; }  // of a raw row
    std::size_t n_decisions() const {
        return view_.n_decisions;
    }  // values of a row; 0 where probabilities are averaged
    std::size_t n_probabilities() const { return approxsvm::n_probabilities(view_); }  // of a row; 0 for none
    std::size_t n_labels() const { return n_labels_of(view_); }                        // 0 for a regression
    // The label at a position; of a one-class model 1 and -1, and beyond the last one a Label of LabelKind::none.
    Label label(std::size_t position) const { return label_at(view_, position); }

    // --- answers

    // Bytes of scratch memory for a thread; 0 before prepare().
    std::size_t workspace_bytes() const { return prepared_ ? approxsvm::workspace_bytes(*prepared_) : 0; }

    // The position of each row's label.
    template <class Rows>
    Status predict(const Rows& rows, Span<std::uint32_t> labels, Span<unsigned char> workspace,
                   Fault* fault = nullptr) const {
        Evaluation out;
        std::uint32_t none = 0;
        out.labels = required(labels, none);
        return evaluate(rows, out, workspace, Values::promised, fault);
    }

    // n_decisions() numbers for each row, and what |value - exact value| never exceeds: of a certified or exact model
    // the source's own values, or those within the tolerance that was asked for at compilation.
    template <class Rows>
    Status decision_values(const Rows& rows, Span<double> values, Span<unsigned char> workspace,
                           Fault* fault = nullptr) const {
        Evaluation out;
        double none = 0.0;
        out.values = required(values, none);
        return evaluate(rows, out, workspace, Values::promised, fault);
    }
    template <class Rows>
    Status error_bounds(const Rows& rows, Span<double> bounds, Span<unsigned char> workspace,
                        Fault* fault = nullptr) const {
        Evaluation out;
        double none = 0.0;
        out.bounds = required(bounds, none);
        return evaluate(rows, out, workspace, Values::promised, fault);
    }

    // n_probabilities() numbers for each row, one for each label in their order.
    template <class Rows>
    Status probabilities(const Rows& rows, Span<double> shares, Span<unsigned char> workspace,
                         Fault* fault = nullptr) const {
        Evaluation out;
        double none = 0.0;
        out.probabilities = required(shares, none);
        return evaluate(rows, out, workspace, Values::promised, fault);
    }

    // Whatever `out` has room for, at once.
    template <class Rows>
    Status evaluate(const Rows& rows, const Evaluation& out, Span<unsigned char> workspace,
                    Values values = Values::promised, Fault* fault = nullptr) const {
        if (!prepared_) return unprepared();
        return with_source(rows, view_,
                           [&](const RowSource& source) { return answer_rows(source, out, workspace, values, fault); });
    }

    // --- the expansion alone, for those who have hardly any memory

    // Values of an approximate model's expansion, or of any model without a proof, and without an input map: needs no
    // prepare(), only expansion_bytes(). `rows` are numbers one after the other, or DenseRows.
    std::size_t expansion_bytes() const { return is_open() ? decision_function_bytes(view_.n_features) : 0; }
    template <class Rows>
    Status expansion_values(const Rows& rows, Span<double> values, Span<unsigned char> memory) const {
        return is_open() ? decision_function(view_, rows, values, memory) : Status::not_open;
    }

    // What the functions below this one work with.
    const ModelView& view() const { return view_; }
    const PreparedModel* prepared() const { return prepared_; }

  private:
    // A copy of the view stands in the caller's memory, where the prepared model finds it wherever this object goes.
    struct Memory {
        ModelView* view;
        unsigned char* prepared;

        Memory(const ModelView& model, Carver& carver)
            : view(carver.take<ModelView>(1)), prepared(carver.take<unsigned char>(prepared_bytes(model))) {}
    };

    bool is_open() const { return view_.n_raw_features > 0; }
    Status unprepared() const { return is_open() ? Status::not_prepared : Status::not_open; }

    // A null span would say that the answer is not wanted.
    template <class T>
    static Span<T> required(Span<T> span, T& none) {
        return span ? span : Span<T>{&none, 0};
    }

    Status answer_rows(const RowSource& rows, const Evaluation& out, Span<unsigned char> workspace, Values values,
                       Fault* fault) const {
        if (fault) *fault = Fault{};
        Request request{rows.n_rows(), values};
        request.fault = fault;
        const Status allowed = check_request(view_, rows.n_rows(), request, out);
        if (allowed != Status::ok) return allowed;
        if (workspace.size < workspace_bytes()) return Status::buffer_too_small;
        std::uint64_t counts[n_stages] = {};
        const Status status = answer(*prepared_, rows, request, out, counts, workspace.data);
        if (fault && (status == Status::not_finite || status == Status::unsorted_indices)) fault->row = first_bad(rows);
        return status;
    }

    // Blocks say that something is wrong with one of their rows, not with which.
    static std::size_t first_bad(const RowSource& rows) {
        std::size_t i = 0;
        while (i + 1 < rows.n_rows() && rows.check(i) == Status::ok) ++i;
        return i;
    }

    ModelView view_{};
    const PreparedModel* prepared_ = nullptr;
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm
