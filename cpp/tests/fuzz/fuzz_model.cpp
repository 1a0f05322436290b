// Fuzzes the parsing of LIBSVM model text. Any outcome other than a TextError or a model with consistent arrays (a
// crash, another exception, a sanitizer report) is a finding.

#include <string_view>

#include "file_kind.hpp"
#include "libsvm_model.hpp"
#include "script.hpp"

namespace {

void check(const approxsvm::text::LibsvmModel& model) {
    const std::size_t n_sv = static_cast<std::size_t>(model.n_sv);
    const bool fits = model.indptr.size() == n_sv + 1 && model.indices.size() == model.values.size() &&
                      model.coef.size() == n_sv * static_cast<std::size_t>(model.n_coef) &&
                      model.scales.size() == model.scaled_indices.size() && model.indptr.front() == 0 &&
                      model.indptr.back() == static_cast<std::int64_t>(model.values.size());
    fuzz::require(fits, "arrays do not fit together");
    for (std::size_t i = 0; i < n_sv; ++i) {
        fuzz::require(model.indptr[i] <= model.indptr[i + 1], "rows do not ascend");
        for (std::int64_t k = model.indptr[i]; k < model.indptr[i + 1]; ++k) {
            const auto at = static_cast<std::size_t>(k);
            const bool ascends = k == model.indptr[i] || model.indices[at] > model.indices[at - 1];
            fuzz::require(model.indices[at] >= model.min_index && model.indices[at] <= model.max_index && ascends,
                          "an index out of its range");
        }
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t n_bytes) {
    const std::string_view text(reinterpret_cast<const char*>(bytes), n_bytes);
    try {
        check(approxsvm::text::parse_libsvm_model(text));
    } catch (const approxsvm::text::TextError& error) {
        const auto explained = approxsvm::text::explained(error, text, approxsvm::text::libsvm_model);
        fuzz::require(*explained.what() != '\0', "an error without words");
    }
    return 0;
}
