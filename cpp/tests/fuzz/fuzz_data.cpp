// Fuzzes the parsing of LIBSVM data text: as a whole on one to three threads, and row by row. Both must agree on rows
// and on errors. Any outcome other than rows or a TextError is a finding.

#include <optional>
#include <string>
#include <string_view>

#include "libsvm_data.hpp"
#include "script.hpp"

namespace {

using namespace approxsvm::text;

/// Returns the message of a TextError.
template <class Parse>
std::optional<std::string> complaint_of(const Parse& parse) {
    try {
        parse();
    } catch (const TextError& error) {
        return error.what();
    }
    return std::nullopt;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t n_bytes) {
    const std::string_view text(reinterpret_cast<const char*>(bytes), n_bytes);
    LibsvmData data;
    const auto at_once = complaint_of([&] { data = parse_libsvm_data(text, 1 + static_cast<int>(n_bytes % 3)); });
    std::size_t n_rows = 0, n_features = 0;
    const auto row_by_row = complaint_of([&] {
        DataRowParser rows(text);
        for (DataRow row; rows.next(row); ++n_rows) n_features += row.n_features;
    });
    fuzz::require(at_once == row_by_row, "errors differ");
    if (at_once) return 0;
    std::size_t n_in_pieces = 0;
    for (const std::string_view piece : split_at_lines(text, 3)) n_in_pieces += parse_libsvm_data(piece).labels.size();
    fuzz::require(n_in_pieces == n_rows && n_rows == data.labels.size(), "rows differ");
    fuzz::require(n_features == data.indices.size() && n_features == data.values.size(), "features differ");
    fuzz::require(data.indptr.size() == n_rows + 1 && data.indptr.back() == static_cast<std::int64_t>(n_features),
                  "rows do not fit together");
    for (const auto index : data.indices)
        fuzz::require(index >= data.min_index && index <= data.max_index, "an index out of its range");
    return 0;
}
