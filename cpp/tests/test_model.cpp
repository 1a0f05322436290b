#include <approxsvm/approxsvm.hpp>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "check.hpp"
#include "exercise.hpp"

// Tests class Model on golden artifacts: any use of it, correct or not, yields an answer or a status. The answers
// themselves are tested in tests/zoo.

using namespace approxsvm;
using exercise::Room;

namespace {

using Bytes = std::vector<unsigned char>;
const char* const names[] = {"breast_cancer",     "iris_classes",   "breast_cancer_one_class", "diabetes_svr",
                             "iris_cubic",        "iris_pipeline",  "iris_calibrated",         "iris_ensemble",
                             "diabetes_pipeline", "shells_exact",   "digits_subspace",         "digits_classes",
                             "iris_fourier",      "iris_logarithms"};
constexpr std::size_t n_rows = 70;  // more than one block

Bytes golden(const std::string& name) {
    std::ifstream file(std::string(APPROXSVM_GOLDEN_DIR) + "/" + name + ".asvm", std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

struct Ready {
    Bytes bytes, memory, workspace;
    Model model;
    std::vector<double> rows;  // raw rows near the data, in which some values are zero

    explicit Ready(const std::string& name) : bytes(golden(name)) {
        CHECK_EQ(model.open(bytes), Status::ok);
        memory.resize(model.memory_bytes());
        CHECK_EQ(model.prepare(memory), Status::ok);
        workspace.resize(model.workspace_bytes());
        const double reach = model.n_features() < 10 ? 6 : 1;
        for (std::size_t i = 0; i < n_rows * model.n_features(); ++i)
            rows.push_back(i % 5 == 0 ? 0.0 : static_cast<double>((i * 7) % 64) / 64.0 * reach);
    }
};

// Dense rows with zeros, compressed into separate arrays.
struct Compressed {
    std::vector<double> values;
    std::vector<std::int32_t> columns, starts{0};

    Compressed(const std::vector<double>& rows, std::size_t d) {
        for (std::size_t i = 0; i < rows.size(); ++i) {
            if (rows[i] != 0.0) {
                values.push_back(rows[i]);
                columns.push_back(static_cast<std::int32_t>(i % d));
            }
            if (i % d == d - 1) starts.push_back(static_cast<std::int32_t>(values.size()));
        }
    }
    SparseRows<double, std::int32_t> rows() const { return {values, columns, starts}; }
};

template <class T>
Span<T> one_less(Span<T> span) {
    return {span.data, span.size - 1};
}

}  // namespace

TEST(what_is_asked_too_early_is_refused) {
    Model model;
    Bytes memory(1 << 20), nothing;
    const std::vector<double> row(4, 0.5);
    std::vector<std::uint32_t> labels(1, 9u);
    std::vector<double> numbers(9);
    CHECK_EQ(model.n_features() + model.n_labels() + model.n_decisions() + model.n_probabilities(), std::size_t{0});
    CHECK_EQ(model.memory_bytes() + model.workspace_bytes() + model.replay_bytes(), std::size_t{0});
    CHECK(model.label(0).kind == LabelKind::none);
    CHECK_EQ(model.prepare(memory), Status::not_open);
    const auto refuse = [&](Status expected) {
        CHECK_EQ(model.replay(memory), expected);
        CHECK_EQ(model.predict(row, labels, memory), expected);
        CHECK_EQ(model.decision_values(row, numbers, memory), expected);
        CHECK_EQ(model.error_bounds(row, numbers, memory), expected);
        CHECK_EQ(model.probabilities(row, numbers, memory), expected);
        CHECK_EQ(model.evaluate(row, Evaluation{}, memory), expected);
        CHECK_EQ(labels[0], 9u);
    };
    refuse(Status::not_open);

    const Bytes bytes = golden("iris_classes");
    CHECK_EQ(model.open(bytes), Status::ok);
    refuse(Status::not_prepared);
    CHECK_EQ(model.workspace_bytes(), std::size_t{0});
    CHECK_EQ(model.prepare({memory.data(), model.memory_bytes() - 1}), Status::buffer_too_small);
    CHECK_EQ(model.prepare(nullptr), Status::buffer_too_small);
    refuse(Status::not_prepared);
    CHECK_EQ(model.prepare(memory), Status::ok);
    Bytes workspace(model.workspace_bytes());
    CHECK_EQ(model.predict(row, labels, workspace), Status::ok);

    // After a failed open(), the model is not open, whatever its state was before.
    CHECK_EQ(model.open(nothing), Status::bad_magic);
    labels[0] = 9;
    refuse(Status::not_open);
}

TEST(sparse_rows_beyond_their_arrays_are_refused) {
    Ready ready("iris_classes");
    const std::vector<double> values(6, 1.0);
    const std::vector<std::int32_t> columns{0, 1, 2, 0, 1, 2};
    std::vector<std::uint32_t> labels(2);
    constexpr std::int32_t most = std::numeric_limits<std::int32_t>::max();
    const struct {
        std::vector<std::int32_t> starts;
        std::size_t n_columns;
        Status expected;
    } cases[] = {{{0, 3, 6}, 6, Status::ok},
                 {{3, 3, 6}, 6, Status::ok},
                 {{0}, 6, Status::ok},
                 {{}, 6, Status::bad_row_starts},
                 {{0, 3, 7}, 6, Status::bad_row_starts},
                 {{0, 3, 6}, 5, Status::bad_row_starts},
                 {{0, 7, 6}, 6, Status::bad_row_starts},
                 {{-1, 3, 6}, 6, Status::bad_row_starts},
                 {{0, 2, most}, 6, Status::bad_row_starts}};
    for (const auto& [starts, n_columns, expected] : cases) {
        const SparseRows<double, std::int32_t> rows{values, {columns.data(), n_columns}, starts};
        CHECK_EQ(ready.model.predict(rows, labels, ready.workspace), expected);
    }
}

TEST(small_buffers_are_refused_unwritten) {
    for (const char* name : names) {
        const Ready ready(name);
        const Model& model = ready.model;
        const Room before(model.view(), n_rows), found(model.view(), n_rows);
        Bytes workspace(ready.workspace);
        const auto refused = [&](Status status) {
            CHECK_EQ(status, Status::buffer_too_small);
            CHECK(found == before);
        };
        const auto refused_without = [&](auto member) {
            Evaluation out = found.out;
            if (!(out.*member)) return;
            out.*member = one_less(out.*member);
            refused(model.evaluate(ready.rows, out, workspace));
        };
        refused(model.evaluate(ready.rows, found.out, {workspace.data(), model.workspace_bytes(n_rows) - 1}));
        refused_without(&Evaluation::certified);
        refused_without(&Evaluation::probability_bounds);
        if (model.n_labels() > 0) {
            refused(model.predict(ready.rows, one_less(found.out.labels), workspace));
            refused(model.predict(ready.rows, nullptr, workspace));
        }
        if (model.n_decisions() > 0) {
            refused(model.decision_values(ready.rows, one_less(found.out.values), workspace));
            refused(model.decision_values(ready.rows, nullptr, workspace));
            refused(model.error_bounds(ready.rows, one_less(found.out.bounds), workspace));
        }
        if (model.n_probabilities() > 0)
            refused(model.probabilities(ready.rows, one_less(found.out.probabilities), workspace));
    }
}

// The functions on which class Model is built; programs may call them directly.
TEST(functions_refuse_small_buffers_unwritten) {
    const Ready ready("breast_cancer");
    const ModelView& view = ready.model.view();
    Bytes memory(prepared_bytes(view)), workspace(ready.workspace);
    const PreparedModel* prepared = nullptr;
    CHECK_EQ(prepare(view, one_less(Span<unsigned char>(memory)), prepared), Status::buffer_too_small);
    CHECK(prepared == nullptr);
    std::vector<double> rows(4 * view.n_features, 0.25), values(4, -1.0);
    const Span<const double> given = rows;
    CHECK_EQ(evaluate(*ready.model.prepared(), one_less(given), {values, nullptr, nullptr, nullptr}, workspace),
             Status::wrong_row_size);
    CHECK(values == std::vector<double>(4, -1.0));
}

TEST(what_a_model_does_not_have_is_refused) {
    std::vector<std::uint32_t> labels(n_rows);
    std::vector<double> numbers(n_rows * 9);
    for (const char* name : names) {
        Ready ready(name);
        const Model& model = ready.model;
        if (model.n_labels() == 0) CHECK_EQ(model.predict(ready.rows, labels, ready.workspace), Status::no_labels);
        if (model.n_decisions() == 0)
            CHECK_EQ(model.error_bounds(ready.rows, numbers, ready.workspace), Status::no_values);
        if (model.n_probabilities() == 0)
            CHECK_EQ(model.probabilities(ready.rows, numbers, ready.workspace), Status::no_probabilities);
    }
}

TEST(faults_name_the_row) {
    for (const char* name : names) {
        Ready ready(name);
        const Model& model = ready.model;
        const std::size_t d = model.n_features();
        const Room found(model.view(), n_rows);
        const auto at_fault = [&](const auto& broken, Status expected, std::size_t row) {
            Fault fault{7, 1.0, 2.0};
            CHECK_EQ(model.evaluate(broken, found.out, ready.workspace, Values::promised, &fault), expected);
            CHECK_EQ(fault.row, row);
        };
        for (const std::size_t row : {std::size_t{0}, std::size_t{41}, n_rows - 1}) {
            std::vector<double> rows = ready.rows;
            rows[row * d + d - 1] = std::numeric_limits<double>::quiet_NaN();
            at_fault(rows, Status::not_finite, row);
            at_fault(Compressed(rows, d).rows(), Status::not_finite, row);
        }
        Compressed sparse(ready.rows, d);
        const std::size_t last = static_cast<std::size_t>(sparse.starts[42]) - 1;
        const std::int32_t column = std::exchange(sparse.columns[last], sparse.columns[last - 1]);
        at_fault(sparse.rows(), Status::unsorted_indices, 41);
        sparse.columns[last] = column + 1000;
        const bool knows_its_features = model.view().has_input_map || std::string(name) == "iris_ensemble";
        at_fault(sparse.rows(), knows_its_features ? Status::unknown_feature : Status::ok, knows_its_features ? 41 : 0);
        sparse.columns[last] = column;
        CHECK_EQ(model.evaluate(sparse.rows(), found.out, ready.workspace), Status::ok);
    }
}

TEST(copies_share_what_they_point_to) {
    for (const char* name : names) {
        const Bytes bytes = golden(name);
        Bytes memory;
        Model copy;
        {
            Model model;
            CHECK_EQ(model.open(bytes), Status::ok);
            memory.resize(model.memory_bytes() + 1);
            CHECK_EQ(model.prepare({memory.data() + 1, memory.size() - 1}), Status::ok);  // at an odd address
            copy = model;
            std::memset(static_cast<void*>(&model), 0xA5, sizeof model);
        }
        Ready ready(name);
        Bytes workspace(copy.workspace_bytes());
        const Room expected(copy.view(), n_rows), found(copy.view(), n_rows);
        CHECK_EQ(ready.model.evaluate(ready.rows, expected.out, ready.workspace), Status::ok);
        CHECK_EQ(copy.evaluate(ready.rows, found.out, workspace), Status::ok);
        CHECK(found == expected);
    }
}

TEST(certificates_do_not_depend_on_the_request) {
    std::size_t n_certified = 0, n_uncertified = 0;
    for (const char* name : names) {
        Ready ready(name);
        Room alone(ready.model.view(), n_rows), all(ready.model.view(), n_rows);
        Evaluation certificate;
        certificate.certified = alone.out.certified;
        CHECK_EQ(ready.model.evaluate(ready.rows, certificate, ready.workspace), Status::ok);
        for (std::size_t i = 0; i < alone.certified.size; ++i)
            ++(alone.certified.data[i] != 0 ? n_certified : n_uncertified);
        for (unsigned skipped = 0; skipped < 16; ++skipped) {
            Evaluation out = all.out;
            if ((skipped & 1u) != 0) out.labels = nullptr;
            if ((skipped & 2u) != 0) out.values = nullptr;
            if ((skipped & 4u) != 0) out.bounds = nullptr;
            if ((skipped & 8u) != 0) out.probabilities = out.probability_bounds = nullptr;
            for (const Values values : {Values::promised, Values::settled, Values::exact}) {
                const Status status = ready.model.evaluate(ready.rows, out, ready.workspace, values);
                if (status == Status::no_exact_values) continue;
                CHECK_EQ(status, Status::ok);
                CHECK(alone.certified == all.certified);
            }
        }
    }
    CHECK(n_certified > 0 && n_uncertified > 0);
}

TEST(labels_print_as_what_they_are) {
    ModelView model{};
    alignas(8) unsigned char bytes[16];
    model.labels = bytes;
    const auto expect = [&](Task task, LabelKind kind, std::size_t n, const std::vector<std::string>& printed) {
        model.task = task, model.label_kind = kind, model.n_labels = static_cast<std::uint32_t>(n);
        for (std::size_t k = 0; k < printed.size(); ++k) {
            std::ostringstream stream;
            stream << label_at(model, k);
            CHECK_EQ(stream.str(), printed[k]);
        }
    };
    const std::int64_t integers[] = {-7, std::numeric_limits<std::int64_t>::max()};
    std::memcpy(bytes, integers, sizeof bytes);
    expect(Task::classification, LabelKind::int64, 2, {"-7", "9223372036854775807"});
    CHECK(label_at(model, 2).kind == LabelKind::none);
    const double numbers[] = {0.1, -1.5e300};
    std::memcpy(bytes, numbers, sizeof bytes);
    expect(Task::classification, LabelKind::float64, 2, {"0.1", "-1.5e+300"});
    const std::uint32_t lengths[] = {2, 4};
    std::memcpy(bytes, lengths, 8);
    std::memcpy(bytes + 8, "nokept", 6);
    expect(Task::classification, LabelKind::text, 2, {"no", "kept"});
    expect(Task::one_class, LabelKind::none, 0, {"1", "-1"});
    expect(Task::regression, LabelKind::none, 0, {""});
}
