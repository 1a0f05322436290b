// A compiled model as programs use it: raw rows in; labels, values, probabilities and what bounds them out. The object
// allocates nothing: it points to the artifact's bytes and to memory that the caller lends.
#pragma once

#include "artifact/labels.hpp"
#include "artifact/reader.hpp"
#include "expansion/decision_function.hpp"
#include "predict/answers.hpp"
#include "predict/replay.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Opened, then prepared, then asked, by any number of threads at once if each has a workspace of its own. What is
// called too early gives a status. A copy shares bytes and memory, which must outlive it.
//
// `rows` are numbers one after the other, n_features() for each row (anything that turns into a Span<const float> or
// Span<const double>), SparseRows, or DenseRows and CsrRows, whose extent the caller answers for. A feature of a sparse
// row that the model does not know counts as in LIBSVM, but is Status::unknown_feature for a pipeline.
//
// Buffers may be larger than needed; one that is too small is refused before anything is written. After an error, what
// has been written is worth nothing; the Fault, where one is given, then says which row it was, if it was one.
//
// `list` names the parts that models may have (parts.hpp): the others are not compiled, and a model that has one is
// Status::left_out.
template <Part... list>
class ModelOf {
    static constexpr Parts parts = with_implied((Parts{0} | ... | list));

  public:
    ModelOf() = default;

    // Validates an artifact: every byte of it is checked. The bytes must begin at a multiple of 8. The ArtifactFault,
    // where one is given, says which field of which section is refused, what was found there and what was expected.
    APPROXSVM_NOINLINE Status open(Span<const unsigned char> bytes, ArtifactFault* fault = nullptr) {
        *this = ModelOf();
        ModelView view{};
        Status status = open_artifact<parts>(bytes.data, bytes.size, view, fault);
        if (status == Status::ok && (parts_needed(view) & ~parts) != 0) status = Status::left_out;
        if (status == Status::ok) view_ = view;
        return status;
    }
    // After Status::left_out: the list that these bytes need, as `approxsvm inspect` prints it.
    static ListOfParts list_needed(Span<const unsigned char> bytes) {
        return ListOfParts(parts_at_sight(bytes.data, bytes.size) | batches);
    }

    // Bytes that prepare() needs, at any address; 0 before open().
    std::size_t memory_bytes() const {
        if (!is_open()) return 0;
        Arena counter(nullptr);
        const Memory memory(view_, counter);
        return counter.bytes_anywhere();
    }

    // Lays the model out for this machine.
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

    // Whether this machine computes what the writer of the artifact meant, in a workspace of replay_bytes(): once, if
    // at all.
    std::size_t replay_bytes() const { return prepared_ ? approxsvm::replay_bytes<parts>(*prepared_) : 0; }
    Status replay(Span<unsigned char> workspace) const {
        if (!prepared_) return unprepared();
        if (workspace.size < replay_bytes()) return Status::buffer_too_small;
        return approxsvm::replay<parts>(*prepared_, workspace.data);
    }

    // --- what it is; all zero before open()

    Task task() const { return view_.task; }
    Mode mode() const { return view_.mode; }
    std::size_t n_features() const { return view_.n_raw_features; }  // of a raw row
    std::size_t n_decisions() const {
        return view_.n_decisions;
    }  // values of a row; 0 where probabilities are averaged
    // Of a row; 0 for none.
    std::size_t n_probabilities() const { return approxsvm::n_probabilities(view_); }
    std::size_t n_labels() const { return n_labels_of(view_); }  // 0 for a regression
    // Labels and certificates of a row: 1, or one for each target of several.
    std::size_t n_targets() const { return is_open() ? n_targets_of(view_) : 0; }
    // The label at a position; of a one-class model 1 and -1, and beyond the last one a Label of LabelKind::none.
    Label label(std::size_t position) const { return label_at(view_, position); }

    // --- columns of texts, which rows have numbers for: categories of a pipeline's encoders

    // How many texts a column has, 0 where it is one of numbers; and the text of a code below that.
    std::size_t n_categories(std::size_t column) const { return texts_of(view_, column).n; }
    std::string_view category(std::size_t column, std::size_t code) const {
        const ColumnTexts texts = texts_of(view_, column);
        return code < texts.n ? texts.text(code) : std::string_view{};
    }
    // What stands for a text (UTF-8) in a row, unknown_category for one that the model does not know: a row with it is
    // refused where the source refuses it. And what stands for a missing value.
    double category_code(std::size_t column, std::string_view text) const { return texts_of(view_, column).code(text); }
    double missing_code(std::size_t column) const { return texts_of(view_, column).null; }

    // --- answers

    // Bytes of scratch memory for a thread, in calls of any number of rows, or of up to n_rows; 0 before prepare(). Up
    // to four rows need little.
    std::size_t workspace_bytes() const { return workspace_bytes(any_number_of_rows); }
    std::size_t workspace_bytes(std::size_t n_rows) const {
        return prepared_ ? approxsvm::workspace_bytes<parts>(*prepared_, n_rows) : 0;
    }

    // The position of each row's label, of n_targets() labels.
    template <class Rows>
    Status predict(const Rows& rows, Span<std::uint32_t> labels, Span<unsigned char> workspace,
                   Fault* fault = nullptr) const {
        return evaluate_one(rows, &Evaluation::labels, labels, workspace, fault);
    }

    // n_decisions() numbers for each row, and what |value - exact value| never exceeds: of a certified or exact model
    // the source's own values, or those within the tolerance that was asked for at compilation.
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

    // n_probabilities() numbers for each row, one for each label in their order.
    template <class Rows>
    Status probabilities(const Rows& rows, Span<double> shares, Span<unsigned char> workspace,
                         Fault* fault = nullptr) const {
        return evaluate_one(rows, &Evaluation::probabilities, shares, workspace, fault);
    }

    // Whatever `out` has room for, at once.
    template <class Rows>
    Status evaluate(const Rows& rows, const Evaluation& out, Span<unsigned char> workspace,
                    Values values = Values::promised, Fault* fault = nullptr) const {
        if (!prepared_) return unprepared();
        return approxsvm::evaluate<parts>(*prepared_, rows, out, workspace, values, fault);
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

        Memory(const ModelView& model, Arena& arena)
            : view(arena.take<ModelView>(1)), prepared(arena.take<unsigned char>(prepared_bytes<parts>(model))) {}
    };

    bool is_open() const { return view_.n_raw_features > 0; }
    Status unprepared() const { return is_open() ? Status::not_prepared : Status::not_open; }

    // One answer of each row. A null span would say that it is not wanted, rather than that there is no room.
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

// A model of any kind.
using Model = ModelOf<static_cast<Part>(all_parts)>;

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm
