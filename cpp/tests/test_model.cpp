#include <approxsvm/approxsvm.hpp>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "check.hpp"

// class Model on golden artifacts: any use of it, right or wrong, gives an answer or a status.

using namespace approxsvm;

namespace {

using Bytes = std::vector<unsigned char>;
const std::vector<std::string> names{"breast_cancer",     "iris_classes",   "breast_cancer_one_class", "diabetes_svr",
                                     "iris_cubic",        "iris_pipeline",  "iris_calibrated",         "iris_ensemble",
                                     "diabetes_pipeline", "shells_exact",   "digits_subspace",         "digits_classes",
                                     "iris_fourier",      "iris_logarithms"};
constexpr std::size_t n_rows = 70;  // more than a block

Bytes golden(const std::string& name) {
    std::ifstream file(std::string(APPROXSVM_GOLDEN_DIR) + "/" + name + ".asvm", std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

struct Ready {
    Bytes bytes, memory, workspace;
    Model model;

    explicit Ready(const std::string& name) : bytes(golden(name)) {
        CHECK_EQ(model.open(bytes), Status::ok);
        memory.resize(model.memory_bytes());
        CHECK_EQ(model.prepare(memory), Status::ok);
        workspace.resize(model.workspace_bytes());
    }
    // Raw rows about where the data are, some numbers of which are zero.
    std::vector<double> rows() const {
        std::vector<double> numbers(n_rows * model.n_features());
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            numbers[i] =
                i % 5 == 0 ? 0.0 : static_cast<double>((i * 7) % 64) / 64.0 * (model.n_features() < 10 ? 6 : 1);
        }
        return numbers;
    }
};

// Everything that a model has to say of some rows.
struct Answers {
    std::vector<std::uint32_t> labels;
    std::vector<std::uint8_t> certified;
    std::vector<double> values, bounds, shares, share_bounds;

    explicit Answers(const Model& model, std::size_t n = n_rows)
        : labels(model.n_labels() > 0 ? n : 0, ~0u),
          certified(n, 9),
          values(n * model.n_decisions(), -77.0),
          bounds(values),
          shares(n * model.n_probabilities(), -77.0),
          share_bounds(shares) {}
    Evaluation evaluation() {
        Evaluation out;
        out.labels = labels;
        out.certified = certified;
        out.values = values;
        out.bounds = bounds;
        out.probabilities = shares;
        out.probability_bounds = share_bounds;
        return out;
    }
    bool operator==(const Answers& other) const {
        return labels == other.labels && certified == other.certified && values == other.values &&
               bounds == other.bounds && shares == other.shares && share_bounds == other.share_bounds;
    }
};

// Rows of zeros and others as arrays of their own.
template <class Real, class Index>
struct Compressed {
    std::vector<Real> values;
    std::vector<Index> columns, starts{0};

    Compressed(const std::vector<double>& rows, std::size_t d) {
        for (std::size_t i = 0; i < rows.size(); ++i) {
            if (rows[i] != 0.0) {
                values.push_back(static_cast<Real>(rows[i]));
                columns.push_back(static_cast<Index>(i % d));
            }
            if (i % d == d - 1) starts.push_back(static_cast<Index>(values.size()));
        }
    }
    SparseRows<Real, Index> rows() const { return {values, columns, starts}; }
};

}  // namespace

TEST(what_is_asked_too_early_is_refused) {
    Model model;
    Bytes memory(1 << 20), nothing;
    const std::vector<float> row(4, 0.5f);
    std::vector<std::uint32_t> labels(1, 9u);
    std::vector<double> numbers(9);
    CHECK_EQ(model.n_features() + model.n_labels() + model.n_decisions() + model.n_probabilities(), std::size_t{0});
    CHECK_EQ(model.memory_bytes() + model.workspace_bytes() + model.replay_bytes() + model.expansion_bytes(),
             std::size_t{0});
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
    CHECK_EQ(model.expansion_values(row, numbers, memory), Status::not_open);

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

    // An artifact that cannot be opened leaves a model that is not open, whatever it was.
    CHECK_EQ(model.open(nothing), Status::bad_magic);
    labels[0] = 9;
    refuse(Status::not_open);
}

TEST(sparse_rows_beyond_their_arrays_are_refused) {
    Ready ready("iris_classes");
    const std::vector<float> values(6, 1.0f);
    const std::vector<std::int32_t> columns{0, 1, 2, 0, 1, 2};
    std::vector<std::uint32_t> labels(2);
    const auto status = [&](const std::vector<std::int32_t>& starts, std::size_t n_columns = 6) {
        const SparseRows<float, std::int32_t> rows{values, {columns.data(), n_columns}, starts};
        return ready.model.predict(rows, labels, ready.workspace);
    };
    CHECK_EQ(status({0, 3, 6}), Status::ok);
    CHECK_EQ(status({3, 3, 6}), Status::ok);
    CHECK_EQ(status({0}), Status::ok);
    CHECK_EQ(status({}), Status::bad_row_starts);
    CHECK_EQ(status({0, 3, 7}), Status::bad_row_starts);
    CHECK_EQ(status({0, 3, 6}, 5), Status::bad_row_starts);
    CHECK_EQ(status({0, 7, 6}), Status::bad_row_starts);
    CHECK_EQ(status({-1, 3, 6}), Status::bad_row_starts);
    CHECK_EQ(status({0, 2, std::numeric_limits<std::int32_t>::max()}), Status::bad_row_starts);
}

TEST(small_buffers_are_refused_unwritten) {
    for (const std::string& name : names) {
        Ready ready(name);
        const Model& model = ready.model;
        const std::vector<double> rows = ready.rows();
        const Answers before(model);
        Answers found(model);
        const auto refused = [&](Status status) {
            CHECK_EQ(status, Status::buffer_too_small);
            CHECK(found == before);
        };
        const auto one_less = [](auto& numbers) {
            Span<std::remove_reference_t<decltype(numbers[0])>> span(numbers);
            --span.size;
            return span;
        };
        Bytes workspace(model.workspace_bytes(n_rows));
        refused(model.evaluate(rows, found.evaluation(), one_less(workspace)));
        Evaluation out = found.evaluation();
        --out.certified.size;
        refused(model.evaluate(rows, out, ready.workspace));
        if (model.n_labels() > 0) {
            refused(model.predict(rows, one_less(found.labels), ready.workspace));
            refused(model.predict(rows, nullptr, ready.workspace));
        }
        if (model.n_decisions() > 0) {
            refused(model.decision_values(rows, one_less(found.values), ready.workspace));
            refused(model.decision_values(rows, nullptr, ready.workspace));
            refused(model.error_bounds(rows, one_less(found.bounds), ready.workspace));
        }
        if (model.n_probabilities() > 0) {
            refused(model.probabilities(rows, one_less(found.shares), ready.workspace));
            out = found.evaluation();
            --out.probability_bounds.size;
            refused(model.evaluate(rows, out, ready.workspace));
        }
    }
}

// The functions that class Model is made of, which programs may call themselves.
TEST(prepared_models_refuse_small_buffers_unwritten) {
    const Bytes bytes = golden("breast_cancer");
    ModelView view;
    CHECK_EQ(open_artifact(bytes.data(), bytes.size(), view), Status::ok);
    Bytes memory(prepared_bytes(view));
    const PreparedModel* prepared = nullptr;
    CHECK_EQ(prepare(view, {memory.data(), memory.size() - 1}, prepared), Status::buffer_too_small);
    CHECK(prepared == nullptr);
    CHECK_EQ(prepare(view, memory, prepared), Status::ok);
    Bytes workspace(workspace_bytes(*prepared, 4));

    const std::vector<float> rows(4 * view.n_features, 0.25f);
    std::vector<double> values(4, -1.0);
    std::vector<std::uint32_t> labels(4, 9u);
    const auto untouched = [&] {
        return values == std::vector<double>(4, -1.0) && labels == std::vector<std::uint32_t>(4, 9u);
    };
    const Span<double> three{values.data(), 3};
    const Span<const float> short_rows{rows.data(), rows.size() - 1};
    CHECK_EQ(evaluate(*prepared, rows, {three, nullptr, nullptr, labels}, workspace), Status::buffer_too_small);
    CHECK_EQ(evaluate(*prepared, rows, {nullptr, three, nullptr, labels}, workspace), Status::buffer_too_small);
    CHECK_EQ(evaluate(*prepared, rows, {values, nullptr, nullptr, {labels.data(), 3}}, workspace),
             Status::buffer_too_small);
    CHECK_EQ(evaluate(*prepared, rows, {values, nullptr, nullptr, labels}, {workspace.data(), workspace.size() - 1}),
             Status::buffer_too_small);
    CHECK_EQ(evaluate(*prepared, short_rows, {values, nullptr, nullptr, labels}, workspace), Status::wrong_row_size);
    Bytes scratch(decision_function_bytes(view.n_features));
    CHECK_EQ(decision_function(view, rows, three, scratch), Status::buffer_too_small);
    CHECK_EQ(decision_function(view, rows, values, {scratch.data(), scratch.size() - 1}), Status::buffer_too_small);
    CHECK_EQ(decision_function(view, short_rows, values, scratch), Status::wrong_row_size);
    view.has_input_map = true;
    CHECK_EQ(decision_function(view, rows, values, scratch), Status::needs_input_map);
    view.has_input_map = false;
    CHECK(untouched());
    CHECK_EQ(decision_function(view, rows, values, scratch), Status::ok);
    CHECK_EQ(evaluate(*prepared, rows, {values, nullptr, nullptr, labels}, workspace), Status::ok);
    CHECK(!untouched());
}

TEST(what_a_model_does_not_have_is_refused) {
    std::vector<std::uint32_t> labels(n_rows);
    std::vector<double> numbers(n_rows * 9);
    for (const std::string& name : names) {
        Ready ready(name);
        const Model& model = ready.model;
        const std::vector<double> rows = ready.rows();
        if (model.n_labels() == 0) CHECK_EQ(model.predict(rows, labels, ready.workspace), Status::no_labels);
        if (model.n_decisions() == 0) CHECK_EQ(model.error_bounds(rows, numbers, ready.workspace), Status::no_values);
        if (model.n_probabilities() == 0)
            CHECK_EQ(model.probabilities(rows, numbers, ready.workspace), Status::no_probabilities);
        Bytes memory(model.expansion_bytes());
        const Status expansion = model.expansion_values(rows, numbers, memory);
        const bool has_none = model.view().n_centers == 0 || model.view().majority_only;
        CHECK_EQ(expansion, has_none                     ? Status::no_expansion
                            : model.view().has_input_map ? Status::needs_input_map
                                                         : Status::ok);
    }
}

TEST(faults_name_the_row) {
    for (const std::string& name : names) {
        Ready ready(name);
        const Model& model = ready.model;
        const std::size_t d = model.n_features();
        std::vector<double> rows = ready.rows();
        Answers found(model);
        Fault fault{7, 1.0, 2.0};
        const auto at_fault = [&](const auto& broken, Status expected, std::size_t row) {
            fault = {7, 1.0, 2.0};
            CHECK_EQ(model.evaluate(broken, found.evaluation(), ready.workspace, Values::promised, &fault), expected);
            CHECK_EQ(fault.row, row);
        };
        for (const std::size_t row : std::vector<std::size_t>{0, 41, n_rows - 1}) {
            const double was = std::exchange(rows[row * d + d - 1], std::numeric_limits<double>::quiet_NaN());
            const Compressed<double, std::int32_t> sparse(rows, d);
            at_fault(rows, Status::not_finite, row);
            at_fault(sparse.rows(), Status::not_finite, row);
            rows[row * d + d - 1] = was;
        }
        Compressed<double, std::int32_t> sparse(rows, d);
        const std::size_t last = static_cast<std::size_t>(sparse.starts[42]) - 1;
        const std::int32_t column = std::exchange(sparse.columns[last], sparse.columns[last - 1]);
        at_fault(sparse.rows(), Status::unsorted_indices, 41);
        sparse.columns[last] = column + 1000;
        const bool knows_its_features = model.view().has_input_map || name == "iris_ensemble";
        at_fault(sparse.rows(), knows_its_features ? Status::unknown_feature : Status::ok, knows_its_features ? 41 : 0);
        sparse.columns[last] = column;
        CHECK_EQ(model.evaluate(sparse.rows(), found.evaluation(), ready.workspace), Status::ok);
    }
}

TEST(copies_share_what_they_point_to) {
    for (const std::string& name : names) {
        const Bytes bytes = golden(name);
        Bytes memory, workspace;
        std::vector<double> rows;
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
        workspace.resize(copy.workspace_bytes());
        Answers expected(copy), found(copy);
        rows = ready.rows();
        CHECK_EQ(ready.model.evaluate(rows, expected.evaluation(), ready.workspace), Status::ok);
        CHECK_EQ(copy.evaluate(rows, found.evaluation(), workspace), Status::ok);
        CHECK(found == expected);
    }
}
