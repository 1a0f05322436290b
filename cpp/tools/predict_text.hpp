// From the text of a data file to the lines of predictions, fused: each piece of the text is parsed,
// predicted and formatted while it is in the cache of one thread. Nothing as large as the data is ever
// stored.
#pragma once

#include <algorithm>
#include <approxsvm/approxsvm.hpp>
#include <array>
#include <atomic>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "libsvm_data.hpp"
#include "loaded_model.hpp"

namespace approxsvm::tools {

/// The least bytes of a chunk. With the expansion alone it costs some 100 microseconds: enough to hide the start of a
/// thread, little enough to stay in cache. Certified rows that need a later stage fill its blocks better when chunks
/// are larger. With the exact engine a row costs hundreds of times as much, and the threads should finish together.
constexpr std::size_t min_chunk_bytes(Mode mode) {
    return std::size_t{1} << (mode == Mode::approximate ? 16 : mode == Mode::certified ? 18 : 14);
}
/// Long rows get larger chunks, so that nearly dense ones still fill the kernel's blocks ...
inline constexpr std::size_t rows_per_chunk = 192;
/// ... up to here, where a thread's buffers would become a burden.
inline constexpr std::size_t max_chunk_bytes = std::size_t{1} << 24;
/// "%.17g" writes at most 24 bytes: sign, 17 digits, point, "e-308".
inline constexpr std::size_t max_real_bytes = 24;

/// The predictions for one piece of the text, and what the closing lines need to know about them.
struct ChunkResult {
    std::string lines;
    std::size_t n_rows = 0;
    /// Classification and one-class: rows whose label in the file is the predicted one.
    std::size_t n_correct = 0;
    /// Regression only; the sums over them are made later, in row order, for any number of threads.
    std::vector<double> predictions;
    std::vector<double> targets;
};

/// A number as printf's "%.17g" writes it.
inline std::string shown(double value) {
    char text[max_real_bytes + 1];
#if defined(__cpp_lib_to_chars) && __cpp_lib_to_chars >= 201611L
    const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::general, 17);
    return std::string(text, end.ptr);
#else
    return std::string(text, static_cast<std::size_t>(std::snprintf(text, sizeof text, "%.17g", value)));
#endif
}

/// One of the two answers of a classifier or one-class model: the line to write, ready, and the number that
/// the labels of the data file are compared with (NaN, which equals nothing, for a text).
struct Answer {
    std::string line;
    double number;
};

inline Answer answer_at(const ModelView& model, std::size_t position) {
    if (model.task == Task::one_class) return position == 0 ? Answer{"1\n", 1.0} : Answer{"-1\n", -1.0};
    switch (model.label_kind) {
        case LabelKind::int64: {
            const std::int64_t label = read_at<std::int64_t>(model.labels, 8 * position);
            return {std::to_string(label) + "\n", static_cast<double>(label)};
        }
        case LabelKind::float64: {
            const double label = read_at<double>(model.labels, 8 * position);
            return {shown(label) + "\n", label};
        }
        case LabelKind::text: {
            const Text label = text_at(model.labels, model.n_labels, position);
            return {std::string(label.data, label.length) + "\n", std::numeric_limits<double>::quiet_NaN()};
        }
        case LabelKind::none:
            break;
    }
    return {};
}

/// Turns decision values into lines.
class Formatter {
  public:
    explicit Formatter(const ModelView& model) : is_regression_(model.task == Task::regression) {
        if (!is_regression_) answers_ = {answer_at(model, 0), answer_at(model, 1)};
    }

    void format(const std::vector<double>& values, const std::vector<double>& targets, ChunkResult& result) const {
        result.n_rows = values.size();
        if (is_regression_) {
            write_values(values, result);
            result.predictions = values;
            result.targets = targets;
        } else {
            write_labels(values, targets, result);
        }
    }

  private:
    void write_labels(const std::vector<double>& values, const std::vector<double>& targets,
                      ChunkResult& result) const {
        result.lines.resize(values.size() * std::max(answers_[0].line.size(), answers_[1].line.size()));
        char* out = result.lines.data();
        for (std::size_t i = 0; i < values.size(); ++i) {
            const Answer& answer = answers_[label_position(values[i])];
            std::memcpy(out, answer.line.data(), answer.line.size());
            out += answer.line.size();
            result.n_correct += targets[i] == answer.number ? 1 : 0;
        }
        result.lines.resize(static_cast<std::size_t>(out - result.lines.data()));
    }

    static void write_values(const std::vector<double>& values, ChunkResult& result) {
        result.lines.reserve(values.size() * (max_real_bytes + 1));
        for (const double value : values) {
            result.lines += shown(value);
            result.lines += '\n';
        }
    }

    bool is_regression_;
    std::array<Answer, 2> answers_;
};

/// The rows of one chunk as a sparse matrix. A thread keeps the memory from chunk to chunk.
class ParsedRows {
  public:
    void parse(std::string_view text, std::uint32_t first_index) {
        make_room(text::max_features(text.size()));
        targets_.clear();
        row_starts_.assign(1, 0);
        text::DataRowParser rows(text);
        std::size_t end = 0, n = 0;
        double target = 0.0;
        while (rows.next(target, columns_.data() + end, values_.data() + end, n)) {
            end += n;
            targets_.push_back(target);
            row_starts_.push_back(static_cast<std::int32_t>(end));
        }
        if (first_index == 0) return;
        for (std::size_t k = 0; k < end; ++k) columns_[k] -= static_cast<std::int32_t>(first_index);
    }

    const std::vector<double>& targets() const { return targets_; }
    CsrRows<double, std::int32_t> matrix() const {
        return {values_.data(), columns_.data(), row_starts_.data(), targets_.size()};
    }

  private:
    // Most of the room is never touched, and then costs nothing: memory of this size comes from the system
    // page by page.
    void make_room(std::size_t n_features) {
        if (n_features > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
            throw std::length_error("a line is too long");
        }
        if (columns_.size() >= n_features) return;
        columns_.resize(n_features);
        values_.resize(n_features);
    }

    std::vector<double> targets_;
    std::vector<std::int32_t> row_starts_;
    text::UninitializedVector<std::int32_t> columns_;
    text::UninitializedVector<double> values_;
};

/// Everything that one thread needs to turn chunks into results.
class ChunkPredictor {
  public:
    ChunkPredictor(const LoadedModel& model, const Formatter& formatter)
        : first_index_(model.view().first_index), formatter_(formatter), decider_(model) {}

    void predict(std::string_view text, ChunkResult& result) {
        rows_.parse(text, first_index_);
        decider_.decide(rows_.matrix(), values_);
        formatter_.format(values_, rows_.targets(), result);
    }

  private:
    const std::uint32_t first_index_;
    const Formatter& formatter_;
    Decider decider_;
    ParsedRows rows_;
    std::vector<double> values_;
};

inline std::vector<std::string_view> cut_into_chunks(std::string_view text, Mode mode) {
    const std::size_t first_row_bytes = std::min(text.find('\n'), text.size());
    const std::size_t wanted = std::min(max_chunk_bytes / rows_per_chunk, first_row_bytes) * rows_per_chunk;
    return text::split_at_lines(text, text.size() / std::max(wanted, min_chunk_bytes(mode)) + 1);
}

/// Calls work() on up to n_threads threads, this one included, and returns when all of them are done. When
/// the system has no more threads to give, the others do the work.
template <class Work>
void run_on_threads(std::size_t n_threads, const Work& work) {
    std::vector<std::thread> others;
    others.reserve(n_threads);
    try {
        while (others.size() + 1 < n_threads) others.emplace_back(work);
    } catch (const std::exception&) {  // no more threads or memory to be had
    }
    work();
    for (std::thread& other : others) other.join();
}

/// Throws the TextError of the first bad line. Only called when a chunk has failed, which may lie behind
/// another bad one: reading from the top is what makes the line number and the choice of the line exact.
inline void throw_first_bad_line(std::string_view text) {
    text::DataRowParser rows(text);
    text::DataRow row;
    while (rows.next(row)) {
        for (std::size_t k = 0; k < row.n_features; ++k) {
            if (std::isfinite(row.values[k])) continue;
            const std::string feature = std::to_string(row.indices[k]);
            throw text::TextError(rows.line() - 1, "the value of feature " + feature + " is " + shown(row.values[k]) +
                                                       ", and only finite values can be predicted");
        }
    }
}

/// Predicts every row of the text on up to n_threads threads. The results, in order, do not depend on
/// n_threads. Throws the TextError of the first bad line, if there is one.
inline std::vector<ChunkResult> predict_text(const LoadedModel& model, std::string_view text, std::size_t n_threads) {
    const std::vector<std::string_view> chunks = cut_into_chunks(text, model.view().mode);
    std::vector<ChunkResult> results(chunks.size());
    const Formatter formatter(model.view());
    std::atomic<std::size_t> next{0};
    std::mutex failure_mutex;
    std::exception_ptr failure;
    run_on_threads(std::min(n_threads, chunks.size()), [&] {
        try {
            ChunkPredictor worker(model, formatter);
            for (std::size_t i = next++; i < chunks.size(); i = next++) worker.predict(chunks[i], results[i]);
        } catch (...) {
            const std::lock_guard<std::mutex> lock(failure_mutex);
            failure = std::current_exception();
            next = chunks.size();  // the others stop after the chunk in hand
        }
    });
    if (failure) {
        throw_first_bad_line(text);
        std::rethrow_exception(failure);
    }
    return results;
}

}  // namespace approxsvm::tools
