// Converts the text of a data file to lines of predictions: each chunk is parsed, predicted and formatted while it is
// in one thread's cache. Nothing as large as the data file is stored.
#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include "decider.hpp"
#include "formatter.hpp"
#include "loaded_model.hpp"
#include "parsed_rows.hpp"

namespace approxsvm::tools {

/// Returns the minimum chunk size. With only the expansion, a chunk of this size takes about 100 microseconds; it is
/// large enough to hide the start of a thread, and small enough to stay in cache. In certified mode, larger chunks fill
/// the blocks of later stages better. With the exact engine, a row takes hundreds of times as long, and small chunks
/// let the threads finish together.
constexpr std::size_t min_chunk_bytes(Mode mode) {
    return std::size_t{1} << (mode == Mode::approximate ? 16 : mode == Mode::certified ? 18 : 14);
}
/// Number of rows per chunk if rows are long: chunks are then larger, so that nearly dense rows still fill the kernel's
/// blocks.
inline constexpr std::size_t rows_per_chunk = 192;
/// Maximum chunk size, which also limits a thread's buffers.
inline constexpr std::size_t max_chunk_bytes = std::size_t{1} << 24;

/// Computes the results for chunks on one thread.
class ChunkPredictor {
  public:
    ChunkPredictor(const LoadedModel& model, const Formatter& formatter)
        : first_index_(model.view().first_index), formatter_(formatter), decider_(model) {}

    void predict(std::string_view text, ChunkResult& result) {
        rows_.parse(text, first_index_);
        decider_.decide(rows_.matrix(), decisions_);
        formatter_.format(decisions_, rows_.targets(), result);
    }

  private:
    const std::uint32_t first_index_;
    const Formatter& formatter_;
    Decider decider_;
    ParsedRows rows_;
    Decisions decisions_;
};

inline std::vector<std::string_view> cut_into_chunks(std::string_view text, Mode mode) {
    const std::size_t first_row_bytes = std::min(text.find('\n'), text.size());
    const std::size_t wanted = std::min(max_chunk_bytes / rows_per_chunk, first_row_bytes) * rows_per_chunk;
    return text::split_at_lines(text, text.size() / std::max(wanted, min_chunk_bytes(mode)) + 1);
}

/// Calls work() on up to n_threads threads, including the calling thread, and returns when all of them are done. If the
/// system cannot start a thread, the others do the work.
template <class Work>
void run_on_threads(std::size_t n_threads, const Work& work) {
    std::vector<std::thread> others;
    others.reserve(n_threads);
    try {
        while (others.size() + 1 < n_threads) others.emplace_back(work);
    } catch (const std::exception&) {  // no thread or memory is left
    }
    work();
    for (std::thread& other : others) other.join();
}

/// Predicts every row of the text on up to n_threads threads. The results, in order, do not depend on n_threads. Throws
/// the TextError for the first invalid line.
inline std::vector<ChunkResult> predict_text(const LoadedModel& model, const Formatter& formatter,
                                             std::string_view text, std::size_t n_threads) {
    const std::vector<std::string_view> chunks = cut_into_chunks(text, model.view().mode);
    std::vector<ChunkResult> results(chunks.size());
    std::atomic<std::size_t> next{0};
    std::mutex failure_mutex;
    std::exception_ptr failure;
    std::size_t failed = chunks.size();  // the first chunk that failed; earlier ones are being processed or done
    run_on_threads(std::min(n_threads, chunks.size()), [&] {
        std::size_t i = 0;
        try {
            ChunkPredictor worker(model, formatter);
            while ((i = next++) < chunks.size()) worker.predict(chunks[i], results[i]);
        } catch (...) {
            const std::lock_guard<std::mutex> lock(failure_mutex);
            if (i < failed) {
                failed = i;
                failure = std::current_exception();
            }
            next = chunks.size();  // the other threads stop after their current chunk
        }
    });
    if (!failure) return results;
    try {
        std::rethrow_exception(failure);
    } catch (const RowError& error) {
        const auto n_before = std::count(text.data(), chunks[failed].data(), '\n');
        throw text::TextError(static_cast<std::size_t>(n_before) + error.row + 1, error.what());
    } catch (...) {
        throw_first_bad_line(text, model.view());
        throw;
    }
}

}  // namespace approxsvm::tools
