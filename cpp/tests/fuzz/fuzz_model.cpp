// LIBSVM model text. Any outcome but a model whose arrays fit together or a TextError (a crash, another exception, a
// sanitizer's report) is a finding.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "file_kind.hpp"
#include "libsvm_model.hpp"

namespace {

void require(bool holds) {
    if (!holds) std::abort();
}

void check(const approxsvm::text::LibsvmModel& model) {
    const std::size_t n_sv = static_cast<std::size_t>(model.n_sv);
    require(model.indptr.size() == n_sv + 1);
    require(model.coef.size() == n_sv * static_cast<std::size_t>(model.n_coef));
    require(model.indices.size() == model.values.size());
    require(model.scales.size() == model.scaled_indices.size());
    require(model.indptr.front() == 0 && model.indptr.back() == static_cast<std::int64_t>(model.values.size()));
    for (std::size_t i = 0; i < n_sv; ++i) {
        require(model.indptr[i] <= model.indptr[i + 1]);
        for (std::int64_t k = model.indptr[i]; k < model.indptr[i + 1]; ++k) {
            const auto at = static_cast<std::size_t>(k);
            require(model.indices[at] >= model.min_index && model.indices[at] <= model.max_index);
            require(k == model.indptr[i] || model.indices[at] > model.indices[at - 1]);
        }
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t n_bytes) {
    const std::string_view text(reinterpret_cast<const char*>(bytes), n_bytes);
    try {
        check(approxsvm::text::parse_libsvm_model(text));
    } catch (const approxsvm::text::TextError& error) {
        require(*approxsvm::text::explained(error, text, approxsvm::text::libsvm_model).what() != '\0');
    }
    return 0;
}
