// Fuzzes rows for the golden artifacts, whose error bounds are valid. Whatever the row, either every target rejects it
// or none does, except where the outcome depends on rounding. If two targets answer the row, in whichever form it is
// passed, alone or among other rows, their values and probabilities satisfy
//
//     |value - value| <= bound + bound,   |probability - probability| <= bound + bound,
//
// and their labels are equal if both are certified, and always if the artifact contains the exact model.
//
// The input consists of the model's number, the values to compute, and the number of rows; then, for each row, the
// number of the data row from which it is made, and changes to the values of that row.

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "exercise.hpp"
#include "libsvm_data.hpp"
#include "predictor.hpp"
#include "script.hpp"

namespace {

using namespace approxsvm;
using exercise::Room;
using exercise::RowForms;
using fuzz::require;
using fuzz::Script;
using Rows = std::vector<std::vector<double>>;

std::vector<unsigned char> read(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// A golden artifact, opened by every target, and its data.
struct Golden {
    explicit Golden(const std::filesystem::path& path) : bytes(read(path)) {
        for (const dispatch::TargetTable* kernels : dispatch::runnable_targets()) {
            predictors.push_back(std::make_unique<dispatch::Predictor>(bytes.data.get(), bytes.size, *kernels));
        }
        const ModelView& model = predictors.front()->model();
        const std::vector<unsigned char> content = read(std::filesystem::path(path).replace_extension(".t"));
        const std::string_view text(reinterpret_cast<const char*>(content.data()), content.size());
        text::DataRowParser parser(text);
        for (text::DataRow row; parser.next(row);) {
            std::vector<double> dense(model.n_raw_features);
            for (std::size_t k = 0; k < row.n_features; ++k) {
                const std::size_t column = static_cast<std::size_t>(row.indices[k]) - model.first_index;
                if (column < dense.size()) dense[column] = row.values[k];
            }
            rows.push_back(dense);
        }
        require(!rows.empty(), path.string() + " has no data beside it");
    }

    Exact<unsigned char> bytes;
    std::vector<std::unique_ptr<dispatch::Predictor>> predictors;
    std::vector<std::vector<double>> rows;
};

const std::vector<std::unique_ptr<Golden>>& goldens() {
    static const std::vector<std::unique_ptr<Golden>> all = [] {
        std::vector<std::filesystem::path> paths;
        for (const auto& entry : std::filesystem::directory_iterator(APPROXSVM_GOLDEN_DIR)) {
            if (entry.path().extension() == ".asvm") paths.push_back(entry.path());
        }
        std::sort(paths.begin(), paths.end());
        std::vector<std::unique_ptr<Golden>> opened;
        for (const auto& path : paths) opened.push_back(std::make_unique<Golden>(path));
        return opened;
    }();
    return all;
}

void change(std::vector<double>& row, const Golden& golden, Script& input) {
    double& number = row[input.below(row.size())];
    const std::vector<double>& other = golden.rows[input.below(golden.rows.size())];
    const auto given = static_cast<double>(input.take<float>());
    switch (input.take<std::uint8_t>() % 6) {
        case 0:
            number = given;
            break;
        case 1:
            number += given;
            break;
        case 2:
            number *= given;
            break;
        case 3:  // between two rows
            for (std::size_t j = 0; j < row.size(); ++j) row[j] += std::fmod(given, 1.0) * (other[j] - row[j]);
            break;
        case 4:
            for (double& each : row) each *= given;
            break;
        default:
            row = other;
    }
}

/// Rows rounded to float32, so that every form contains the same values.
RowForms forms_of(const Rows& rows) {
    RowForms forms;
    forms.n_rows = rows.size();
    forms.stride = static_cast<std::ptrdiff_t>(rows.front().size());
    for (const std::vector<double>& row : rows) {
        for (std::size_t j = 0; j < row.size(); ++j) {
            forms.add(std::min(std::max(row[j], -3e38), 3e38));  // NaN is kept
            forms.columns.push_back(static_cast<std::int64_t>(j));
        }
        forms.starts.push_back(static_cast<std::int64_t>(forms.columns.size()));
    }
    forms.finish();
    return forms;
}

struct Answer {
    Room room;
    Status status;

    Answer(const dispatch::Predictor& predictor, const RowForms& rows, unsigned form, Values values)
        : room(predictor.model(), rows.n_rows), status(rows.in_form(form, [&](const auto& given) {
              dispatch::StageCounts counts{};
              return predictor.evaluate(given, room.out, counts, 1, {0, values});
          })) {}
};

void within_bounds(const Exact<double>& a, const Exact<double>& b, const Exact<double>& a_bounds,
                   const Exact<double>& b_bounds, std::size_t first_of_b, const std::string& what) {
    for (std::size_t k = 0; k < a.size; ++k) {
        const std::size_t at = first_of_b + k;
        const double difference = std::fabs(a.data[k] - b.data[at]), allowed = a_bounds.data[k] + b_bounds.data[at];
        // The sum of the two bounds and the difference of the values are themselves rounded.
        const double rounded = 4e-16 * (allowed + std::fabs(a.data[k]));
        require(difference <= allowed + rounded,
                what + " differ by " + std::to_string(difference) + ", allowed " + std::to_string(allowed));
    }
}

/// The rows in `one` are those in `all` from `first` on.
void agree(const ModelView& model, const Room& one, const Room& all, std::size_t first, const std::string& where) {
    const std::size_t n = one.labels.size, n_shares = one.shares.size / n;
    if (one.out.values)
        within_bounds(one.values, all.values, one.bounds, all.bounds, first * model.n_decisions, where + "values");
    if (one.out.probabilities)
        within_bounds(one.shares, all.shares, one.share_bounds, all.share_bounds, first * n_shares,
                      where + "probabilities");
    const bool is_exact = model.mode == Mode::certified || model.mode == Mode::exact;
    for (std::size_t i = 0; one.out.labels && i < n; ++i) {
        const bool both_certified = one.certified.data[i] != 0 && all.certified.data[first + i] != 0;
        require(!(both_certified || is_exact) || one.labels.data[i] == all.labels.data[first + i],
                where + "labels differ");
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t n_bytes) {
    if (n_bytes < 4) return -1;
    Script input(bytes, n_bytes);
    const std::size_t number = input.take<std::uint8_t>() % goldens().size();
    const Golden& golden = *goldens()[number];
    const ModelView& model = golden.predictors.front()->model();
    const unsigned choice = input.take<std::uint8_t>();
    const auto values = static_cast<Values>(model.mode == Mode::approximate ? choice % 2 : choice % 3);
    const std::size_t sizes[] = {1, 2, 9, 33};
    Rows rows;
    while (rows.size() < sizes[choice / 3 % 4]) {
        rows.push_back(golden.rows[input.below(golden.rows.size())]);
        for (int left = input.take<std::uint8_t>() % 4; left > 0; --left) change(rows.back(), golden, input);
    }
    const std::size_t i = choice % rows.size();
    const RowForms all = forms_of(rows), one = forms_of({rows[i]});
    const Answer first(*golden.predictors.front(), all, 0, values);
    for (const auto& predictor : golden.predictors) {
        for (unsigned form = 0; form < 4; ++form) {
            const std::string where = "model " + std::to_string(number) + ", " + predictor->kernels().name + ", form " +
                                      std::to_string(form) + ": ";
            const Answer other(*predictor, all, form, values);
            require(other.status == first.status ||
                        (exercise::hangs_on_rounding(other.status) && exercise::hangs_on_rounding(first.status)),
                    where + message(other.status) + ", but at first " + message(first.status));
            if (first.status != Status::ok || other.status != Status::ok) continue;
            agree(model, other.room, first.room, 0, where);
            const Answer alone(*predictor, one, form, values);
            if (alone.status == Status::ok) agree(model, alone.room, first.room, i, where + "alone, ");
        }
    }
    return 0;
}
