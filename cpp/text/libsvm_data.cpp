#include "libsvm_data.hpp"

#include <algorithm>
#include <future>
#include <limits>
#include <string>

namespace approxsvm::text {
namespace {

// With smaller chunks, starting a thread takes more time than it saves.
constexpr std::size_t min_chunk_bytes = std::size_t{1} << 16;

/// A chunk of the text, and where its rows and features begin in the result.
struct Chunk {
    std::string_view text;
    std::size_t first_row = 0;
    std::size_t first_feature = 0;
    std::size_t n_rows = 0;
    std::size_t n_features = 0;
    std::int32_t min_index = std::numeric_limits<std::int32_t>::max();
    std::int32_t max_index = -1;
};

/// Each line is a row, so counting line breaks and colons before parsing gives the exact numbers of rows and features
/// in a valid chunk.
void count_rows_and_features(Chunk& chunk) {
    const TextCounts counts = count_line_breaks_and_colons(chunk.text);
    const bool has_open_line = !chunk.text.empty() && chunk.text.back() != '\n';
    chunk.n_rows = counts.n_line_breaks + (has_open_line ? 1 : 0);
    chunk.n_features = counts.n_colons;
}

void parse_chunk(Chunk& chunk, LibsvmData& data) {
    double* row_label = data.labels.data() + chunk.first_row;
    std::int64_t* row_end = data.indptr.data() + chunk.first_row + 1;
    std::size_t end = chunk.first_feature;
    std::size_t n = 0;
    double label = 0.0;
    DataRowParser rows(chunk.text, chunk.first_row + 1);
    while (rows.next(label, data.indices.data() + end, data.values.data() + end, n)) {
        if (n > 0) {
            chunk.min_index = std::min(chunk.min_index, data.indices[end]);
            chunk.max_index = std::max(chunk.max_index, data.indices[end + n - 1]);
        }
        end += n;
        *row_label++ = label;
        *row_end++ = static_cast<std::int64_t>(end);
    }
}

/// Runs task(chunk) for all chunks, the first one on this thread. Waits for all of them, then throws the exception from
/// the first chunk that failed.
template <class Task>
void for_each_chunk(std::vector<Chunk>& chunks, Task task) {
    std::vector<std::future<void>> others;
    others.reserve(chunks.size() - 1);
    for (std::size_t i = 1; i < chunks.size(); ++i) {
        others.push_back(std::async(std::launch::async, [&task, &chunk = chunks[i]] { task(chunk); }));
    }
    task(chunks.front());
    for (std::future<void>& other : others) other.get();
}

std::vector<Chunk> cut_into_chunks(std::string_view text, int n_threads) {
    const std::size_t n_useful = text.size() / min_chunk_bytes + 1;
    const std::size_t n_chunks = std::min(n_useful, static_cast<std::size_t>(std::max(n_threads, 1)));
    std::vector<Chunk> chunks(n_chunks);
    const std::vector<std::string_view> pieces = split_at_lines(text, n_chunks);
    for (std::size_t i = 0; i < n_chunks; ++i) chunks[i].text = pieces[i];
    return chunks;
}

}  // namespace

void DataRowParser::throw_label_error(const char* label, const char* line_last) const {
    const std::string token = quote_token(label, line_last);
    std::string why = label == line_last ? "the line is blank" : "label " + token + " is not a number";
    if (token.find_first_of(",;|") != std::string::npos)
        why += "; if this is CSV, approxsvm score reads it, and other commands of approxsvm do with --delimiter";
    throw TextError(line_, "wrong input format: " + why);
}

void DataRowParser::throw_feature_error(const FeatureParse& parse, const char* line_last) const {
    throw TextError(line_, "wrong input format: " + describe(parse, line_last));
}

std::vector<std::string_view> split_at_lines(std::string_view text, std::size_t n_chunks) {
    std::vector<std::string_view> chunks;
    chunks.reserve(n_chunks);
    while (chunks.size() + 1 < n_chunks) {
        // Recompute the target length at each cut, so that one very long line does not leave the last chunk empty.
        const std::size_t target = text.size() / (n_chunks - chunks.size());
        const std::size_t line_break = target == 0 ? std::string_view::npos : text.find('\n', target - 1);
        const std::size_t cut = line_break == std::string_view::npos ? text.size() : line_break + 1;
        chunks.push_back(text.substr(0, cut));
        text.remove_prefix(cut);
    }
    if (n_chunks > 0) chunks.push_back(text);
    return chunks;
}

LibsvmData parse_libsvm_data(std::string_view text, int n_threads) {
    std::vector<Chunk> chunks = cut_into_chunks(text, n_threads);
    for_each_chunk(chunks, count_rows_and_features);

    std::size_t n_rows = 0;
    std::size_t n_features = 0;
    for (Chunk& chunk : chunks) {
        chunk.first_row = n_rows;
        chunk.first_feature = n_features;
        n_rows += chunk.n_rows;
        n_features += chunk.n_features;
    }
    LibsvmData data;
    data.labels.resize(n_rows);
    data.indptr.resize(n_rows + 1);
    data.indptr.front() = 0;
    data.indices.resize(n_features);
    data.values.resize(n_features);
    for_each_chunk(chunks, [&data](Chunk& chunk) { parse_chunk(chunk, data); });

    for (const Chunk& chunk : chunks) {
        if (chunk.max_index < 0) continue;
        data.min_index = data.min_index < 0 ? chunk.min_index : std::min(data.min_index, chunk.min_index);
        data.max_index = std::max(data.max_index, chunk.max_index);
    }
    return data;
}

}  // namespace approxsvm::text
