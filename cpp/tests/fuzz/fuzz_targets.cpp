// Rows for the golden artifacts, which are honest about their error. However a row is made, every target refuses it or
// none does, but for what hangs on a rounding; and of two that answer it, in whichever form the row is handed over,
// alone or among others,
//
//     |value - value| <= bound + bound,   |probability - probability| <= bound + bound,
//
// the labels are the same where both are certified, and always where the artifact has the exact model on board.
//
// Input: which model, the promise, the number of rows; then for each row which row of the model's data it starts from,
// and changes of its numbers.

#include <algorithm>
#include <approxsvm/approxsvm.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "answers.hpp"
#include "artifact_writer.hpp"
#include "libsvm_data.hpp"
#include "predictor.hpp"

namespace {

using namespace fuzz;

std::vector<unsigned char> read(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// A golden artifact, opened by every target, and its data.
struct Golden {
    explicit Golden(const std::filesystem::path& path) : bytes(read(path)), copy(bytes) {
        for (const dispatch::TargetTable* kernels : dispatch::runnable_targets()) {
            predictors.push_back(std::make_unique<dispatch::Predictor>(copy.data(), bytes.size(), *kernels));
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
        if (rows.empty()) fail(path.string() + " has no data beside it");
    }

    std::vector<unsigned char> bytes;
    artifact_writer::ExactCopy copy;
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

/// The input, number by number; zeros behind its end.
class Reader {
  public:
    Reader(const std::uint8_t* bytes, std::size_t n_bytes) : next_(bytes), left_(n_bytes) {}
    template <class T>
    T take() {
        T value{};
        const std::size_t n = std::min(left_, sizeof value);
        if (n > 0) std::memcpy(&value, next_, n);
        next_ += n, left_ -= n;
        return value;
    }
    std::size_t below(std::size_t n) { return take<std::uint16_t>() % n; }

  private:
    const std::uint8_t* next_;
    std::size_t left_;
};

void change(std::vector<double>& row, const Golden& golden, Reader& input) {
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

/// Rows as float32 holds them: every form then stands for the same numbers.
RowForms made(const Golden& golden, std::size_t n_rows, Reader& input) {
    RowForms rows;
    rows.n_rows = n_rows;
    rows.n_features = golden.rows.front().size();
    rows.stride = static_cast<std::ptrdiff_t>(rows.n_features);
    rows.starts.push_back(0);
    for (std::size_t i = 0; i < n_rows; ++i) {
        std::vector<double> row = golden.rows[input.below(golden.rows.size())];
        for (int left = input.take<std::uint8_t>() % 4; left > 0; --left) change(row, golden, input);
        for (std::size_t j = 0; j < row.size(); ++j) {
            const double within = std::min(std::max(row[j], -3e38), 3e38);  // not for NaN, which stays
            rows.narrow.push_back(static_cast<float>(within));
            rows.wide.push_back(static_cast<double>(rows.narrow.back()));
            rows.columns.push_back(static_cast<std::int64_t>(j));
        }
        rows.starts.push_back(static_cast<std::int64_t>(rows.columns.size()));
    }
    rows.narrow_columns.assign(rows.columns.begin(), rows.columns.end());
    rows.narrow_starts.assign(rows.starts.begin(), rows.starts.end());
    return rows;
}

struct Answer {
    Status status;
    std::unique_ptr<Room> room;
};

Answer answered(const dispatch::Predictor& predictor, const RowForms& rows, unsigned form, Values values) {
    Answer answer;
    answer.room = std::make_unique<Room>(predictor.model(), predictor.n_probabilities(), rows.n_rows, 1);
    const Evaluation& out = answer.room->out;
    dispatch::StageCounts counts{};
    const Request request{0, values};
    switch (form) {
        case 0:
            answer.status = predictor.evaluate(rows.dense_f32(), out, counts, 1, request);
            break;
        case 1:
            answer.status = predictor.evaluate(rows.dense_f64(), out, counts, 1, request);
            break;
        case 2:
            answer.status = predictor.evaluate(rows.csr_f32(), out, counts, 1, request);
            break;
        default:
            answer.status = predictor.evaluate(rows.csr_f64(), out, counts, 1, request);
    }
    return answer;
}

/// Row `i` alone.
RowForms row_of(const RowForms& all, std::size_t i) {
    RowForms one;
    const auto d = static_cast<std::ptrdiff_t>(all.n_features), first = static_cast<std::ptrdiff_t>(i) * d;
    one.n_rows = 1;
    one.n_features = all.n_features;
    one.stride = d;
    one.narrow.assign(all.narrow.begin() + first, all.narrow.begin() + first + d);
    one.wide.assign(all.wide.begin() + first, all.wide.begin() + first + d);
    one.columns.assign(all.columns.begin(), all.columns.begin() + d);
    one.starts = {0, d};
    one.narrow_columns.assign(one.columns.begin(), one.columns.end());
    one.narrow_starts.assign(one.starts.begin(), one.starts.end());
    return one;
}

void within_bounds(const Exact<double>& a, const Exact<double>& b, const Exact<double>& a_bounds,
                   const Exact<double>& b_bounds, std::size_t first_of_b, const std::string& what) {
    for (std::size_t k = 0; k < a.size; ++k) {
        const std::size_t at = first_of_b + k;
        const double difference = std::fabs(a.data[k] - b.data[at]), allowed = a_bounds.data[k] + b_bounds.data[at];
        // The sum of both bounds is rounded itself, and so is the difference.
        const double rounded = 4e-16 * (allowed + std::fabs(a.data[k]));
        if (!(difference <= allowed + rounded)) {
            fail(what + " differ by " + std::to_string(difference) + ", allowed " + std::to_string(allowed));
        }
    }
}

/// `one` has rows `first` on of those that `all` has.
void agree(const ModelView& model, const Room& one, const Room& all, std::size_t first, const std::string& where) {
    const std::size_t n = one.labels.size, n_shares = one.shares.size / n;
    if (one.out.values)
        within_bounds(one.values, all.values, one.bounds, all.bounds, first * model.n_decisions, where + "values");
    if (one.out.probabilities)
        within_bounds(one.shares, all.shares, one.share_bounds, all.share_bounds, first * n_shares,
                      where + "probabilities");
    if (!one.out.labels) return;
    const bool is_exact = model.mode == Mode::certified || model.mode == Mode::exact;
    for (std::size_t i = 0; i < n; ++i) {
        const bool both_certified = one.certified.data[i] != 0 && all.certified.data[first + i] != 0;
        if ((both_certified || is_exact) && one.labels.data[i] != all.labels.data[first + i])
            fail(where + "labels differ");
    }
}

bool hangs_on_rounding(Status status) {
    return status == Status::ok || status == Status::beyond_float64 || status == Status::beyond_tolerance ||
           status == Status::map_overflow || status == Status::outside_domain;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t n_bytes) {
    if (n_bytes < 4) return -1;
    Reader input(bytes, n_bytes);
    const std::size_t number = input.take<std::uint8_t>() % goldens().size();
    const Golden& golden = *goldens()[number];
    const ModelView& model = golden.predictors.front()->model();
    const unsigned choice = input.take<std::uint8_t>();
    const auto values = static_cast<Values>(model.mode == Mode::approximate ? choice % 2 : choice % 3);
    const std::size_t sizes[] = {1, 2, 9, 33};
    const RowForms rows = made(golden, sizes[choice / 3 % 4], input);
    Answer first;
    for (std::size_t t = 0; t < golden.predictors.size(); ++t) {
        const dispatch::Predictor& predictor = *golden.predictors[t];
        for (unsigned form = 0; form < 4; ++form) {
            const std::string where = "model " + std::to_string(number) + ", " + predictor.kernels().name + ", form " +
                                      std::to_string(form) + ": ";
            Answer answer = answered(predictor, rows, form, values);
            if (t == 0 && form == 0) first = std::move(answer);
            const Answer& other = t == 0 && form == 0 ? first : answer;
            const bool alike =
                other.status == first.status || (hangs_on_rounding(other.status) && hangs_on_rounding(first.status));
            if (!alike) fail(where + message(other.status) + ", but at first " + message(first.status));
            if (first.status != Status::ok || other.status != Status::ok) continue;
            agree(model, *other.room, *first.room, 0, where);
            const std::size_t i = choice % rows.n_rows;
            const Answer alone = answered(predictor, row_of(rows, i), form, values);
            if (alone.status == Status::ok) agree(model, *alone.room, *first.room, i, where + "alone, ");
        }
    }
    return 0;
}
