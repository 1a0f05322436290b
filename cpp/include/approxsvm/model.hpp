// A compiled model for programs: it takes raw rows and returns labels, values, probabilities and their bounds. The
// model allocates no memory; it points into the artifact's bytes and caller-provided memory.
#ifndef APPROXSVM_MODEL_HPP
#define APPROXSVM_MODEL_HPP

#include "artifact/labels.hpp"
#include "artifact/reader.hpp"
#include "predict/predict.hpp"
#include "predict/prepare/layout.hpp"
#include "predict/replay.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Call open(), then prepare(), then predict from any number of threads, each with its own workspace. Calls in any other
// order return an error status. A copy refers to the original's bytes and memory; both buffers must outlive the copy.
//
// The argument `rows` is a contiguous array with n_features() elements per row (any type that converts to Span<const
// float> or Span<const double>), or it is a SparseRows, DenseRows or CsrRows. The array sizes of the last two are not
// checked. Sparse features unknown to the model are treated as in LIBSVM, except that a pipeline returns
// Status::unknown_feature.
//
// Buffers may be larger than needed. One that is too small is rejected before anything is written. After an error, the
// outputs are undefined; if a Fault is passed, it is filled with the index of the row that caused the error.
//
// The template parameter `list` names the parts that models may have (parts.hpp). Other parts are not compiled; opening
// a model that needs one of them returns Status::left_out.
template <Part... list>
class ModelOf {
    static constexpr Parts parts = with_implied((Parts{0} | ... | list));

  public:
    ModelOf() = default;

    // Validates an artifact; every byte is checked. The address of `bytes` must be a multiple of 8. If an ArtifactFault
    // is passed, it is filled with the section, the field, its value and the expected value.
    APPROXSVM_NOINLINE Status open(Span<const unsigned char> bytes, ArtifactFault* fault = nullptr) {
        *this = ModelOf();
        ModelView view{};
        Status status = open_artifact<parts>(bytes.data, bytes.size, view, fault);
        if (status == Status::ok && (parts_needed(view) & ~parts) != 0) status = Status::left_out;
        if (status == Status::ok) view_ = view;
        return status;
    }
    // After Status::left_out, returns the list of parts that this artifact needs, as printed by `approxsvm inspect`.
    static ListOfParts list_needed(Span<const unsigned char> bytes) {
        return ListOfParts(parts_at_sight(bytes.data, bytes.size) | batches);
    }

    // Number of bytes that prepare() needs at any alignment; 0 before open().
    std::size_t memory_bytes() const {
        if (!is_open()) return 0;
        Arena counter(nullptr);
        const Memory memory(view_, counter);
        return counter.bytes_anywhere();
    }

    // Prepares the model for this machine.
    APPROXSVM_NOINLINE Status prepare(Span<unsigned char> memory) {
        prepared_ = nullptr;
        if (!is_open()) return Status::not_open;
        if (!memory || memory.size < memory_bytes()) return Status::buffer_too_small;
        Arena arena(memory.data);
        const Memory pieces(view_, arena);
        const ModelView& view = *new (pieces.view) ModelView(view_);
        prepared_ = &lay_out<parts>(view, pieces.prepared);
        return Status::ok;
    }

    // Checks, in a workspace of replay_bytes(), that this machine computes the same values as the one that wrote the
    // artifact. One check per process is sufficient.
    std::size_t replay_bytes() const { return prepared_ ? approxsvm::replay_bytes<parts>(*prepared_) : 0; }
    Status replay(Span<unsigned char> workspace) const {
        if (!prepared_) return unprepared();
        if (workspace.size < replay_bytes()) return Status::buffer_too_small;
        return approxsvm::replay<parts>(*prepared_, workspace.data);
    }

    // --- properties; all are zero before open()

    Task task() const { return view_.task; }
    Mode mode() const { return view_.mode; }
    std::size_t n_features() const { return view_.n_raw_features; }  // number of features of a raw row
    std::size_t n_decisions() const {
        return view_.n_decisions;
    }  // number of values per row; 0 if the model averages probabilities
    // Number of probabilities per row; 0 if the model has no probabilities.
    std::size_t n_probabilities() const { return approxsvm::n_probabilities(view_); }
    std::size_t n_labels() const { return n_labels_of(view_); }  // number of labels; 0 for a regressor
    // Number of labels, and of certificates, per row: one per target.
    std::size_t n_targets() const { return is_open() ? n_targets_of(view_) : 0; }
    // Returns the label with index `position`. One-class models have the labels 1 and -1. For indices past the last
    // label, returns a Label of LabelKind::none.
    Label label(std::size_t position) const { return label_at(view_, position); }

    // --- string columns, such as the categories of a pipeline's encoders, which rows contain as codes

    // Number of strings in a column (0 for a numeric column), and the string for each code below this number.
    std::size_t n_categories(std::size_t column) const { return texts_of(view_, column).n; }
    std::string_view category(std::size_t column, std::size_t code) const {
        const ColumnTexts texts = texts_of(view_, column);
        return code < texts.n ? texts.text(code) : std::string_view{};
    }
    // Returns the code of a UTF-8 string, or unknown_category if the model does not know the string. Rows with
    // unknown_category are rejected if the source rejects unknown strings. The next function returns the code of a
    // missing value.
    double category_code(std::size_t column, std::string_view text) const { return texts_of(view_, column).code(text); }
    double missing_code(std::size_t column) const { return texts_of(view_, column).null; }

    // --- predictions

    // Size in bytes of one thread's workspace, for calls with any number of rows or with at most n_rows; 0 before
    // prepare(). Calls with up to four rows need little memory.
    std::size_t workspace_bytes() const { return workspace_bytes(any_number_of_rows); }
    std::size_t workspace_bytes(std::size_t n_rows) const {
        return prepared_ ? approxsvm::workspace_bytes<parts>(*prepared_, n_rows) : 0;
    }

    // Writes the indices of each row's labels, n_targets() per row.
    template <class Rows>
    Status predict(const Rows& rows, Span<std::uint32_t> labels, Span<unsigned char> workspace,
                   Fault* fault = nullptr) const {
        return evaluate_one(rows, &Evaluation::labels, labels, workspace, fault);
    }

    // Write, for each row, n_decisions() values or upper bounds on |value - exact value|. Certified and exact models
    // compute the source's values, or values within the tolerance requested at compilation.
    template <class Rows>
    Status decision_values(const Rows& rows, Span<double> values, Span<unsigned char> workspace,
                           Fault* fault = nullptr) const {
        return evaluate_one(rows, &Evaluation::values, values, workspace, fault);
    }
    template <class Rows>
    Status error_bounds(const Rows& rows, Span<double> bounds, Span<unsigned char> workspace,
                        Fault* fault = nullptr) const {
        return evaluate_one(rows, &Evaluation::bounds, bounds, workspace, fault);
    }

    // Writes n_probabilities() values per row, one per label, in label order.
    template <class Rows>
    Status probabilities(const Rows& rows, Span<double> shares, Span<unsigned char> workspace,
                         Fault* fault = nullptr) const {
        return evaluate_one(rows, &Evaluation::probabilities, shares, workspace, fault);
    }

    // Fills every non-null output of `out` in one call.
    template <class Rows>
    Status evaluate(const Rows& rows, const Evaluation& out, Span<unsigned char> workspace,
                    Values values = Values::promised, Fault* fault = nullptr) const {
        if (!prepared_) return unprepared();
        return approxsvm::evaluate<parts>(*prepared_, rows, out, workspace, values, fault);
    }

    // Returns the view used by functions of the core.
    const ModelView& view() const { return view_; }
    const PreparedModel* prepared() const { return prepared_; }

  private:
    // The caller's memory holds a copy of the view, so that the prepared model finds it even if this object moves.
    struct Memory {
        ModelView* view;
        unsigned char* prepared;

        Memory(const ModelView& model, Arena& arena)
            : view(arena.take<ModelView>(1)), prepared(arena.take<unsigned char>(prepared_bytes<parts>(model))) {}
    };

    bool is_open() const { return view_.n_raw_features > 0; }
    Status unprepared() const { return is_open() ? Status::not_prepared : Status::not_open; }

    // Fills one output per row. A null span, which would otherwise mean "not wanted", is rejected as too small.
    template <class T, class Rows>
    Status evaluate_one(const Rows& rows, Span<T> Evaluation::* answer, Span<T> room, Span<unsigned char> workspace,
                        Fault* fault) const {
        T none{};
        Evaluation out;
        out.*answer = room ? room : Span<T>{&none, 0};
        return evaluate(rows, out, workspace, Values::promised, fault);
    }

    ModelView view_{};
    const PreparedModel* prepared_ = nullptr;
};

// Opens any artifact.
using Model = ModelOf<static_cast<Part>(all_parts)>;

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif
