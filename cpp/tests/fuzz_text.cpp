// libFuzzer target: the first byte chooses the parser and the number of threads. Any outcome but a result or
// a TextError (a crash, another exception, a sanitizer's report) is a finding.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "libsvm_data.hpp"
#include "libsvm_model.hpp"

namespace {

void require(bool holds) {
    if (!holds) std::abort();
}

void parse_model(std::string_view text) {
    const auto model = approxsvm::text::parse_libsvm_model(text);
    const std::size_t n_sv = static_cast<std::size_t>(model.n_sv);
    require(model.indptr.size() == n_sv + 1);
    require(model.coef.size() == n_sv * static_cast<std::size_t>(model.n_coef));
    require(model.indices.size() == model.values.size());
    require(model.indptr.back() == static_cast<std::int64_t>(model.values.size()));
}

/// Parsing at once and row by row must agree.
void parse_data(std::string_view text, int n_threads) {
    const auto data = approxsvm::text::parse_libsvm_data(text, n_threads);
    approxsvm::text::DataRowParser rows(text);
    approxsvm::text::DataRow row;
    std::size_t n_rows = 0;
    std::size_t n_features = 0;
    for (; rows.next(row); ++n_rows) n_features += row.n_features;
    require(n_rows == data.labels.size());
    require(n_features == data.indices.size());
    require(data.indptr.back() == static_cast<std::int64_t>(n_features));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t n_bytes) {
    if (n_bytes == 0) return 0;
    const std::string_view text(reinterpret_cast<const char*>(bytes) + 1, n_bytes - 1);
    try {
        if (bytes[0] % 2 == 0) {
            parse_model(text);
        } else {
            parse_data(text, 1 + bytes[0] % 3);
        }
    } catch (const approxsvm::text::TextError&) {
    }
    return 0;
}
