// Compiled once per target, with that target's flags and with APPROXSVM_TARGET_NAME set to the name CMake
// meant.
#include <approxsvm/approxsvm.hpp>

#include "kernels.hpp"

#define APPROXSVM_TEXT_OF(x) #x
#define APPROXSVM_TEXT(x) APPROXSVM_TEXT_OF(x)
#define APPROXSVM_JOIN_OF(a, b) a##b
#define APPROXSVM_JOIN(a, b) APPROXSVM_JOIN_OF(a, b)
#define APPROXSVM_TABLE APPROXSVM_JOIN(table_of_, APPROXSVM_TARGET)

namespace approxsvm::dispatch {
namespace APPROXSVM_TABLE {

constexpr bool same(const char* a, const char* b) {
    return *a == *b && (*a == 0 || same(a + 1, b + 1));
}
static_assert(same(APPROXSVM_TEXT(APPROXSVM_TARGET), APPROXSVM_TARGET_NAME), "the compiler flags give another target");

Status replay(const ModelView& model, void* memory) {
    return replay_check_rows(model, memory);
}

const void* prepare_model(const ModelView& model, void* memory) {
    return &prepare(model, memory);
}

Status replay_exact(const void* prepared, void* memory) {
    return replay_exact_check_rows(*static_cast<const PreparedModel*>(prepared), memory);
}

template <class Rows, class Source>
Status evaluate_rows(const void* prepared, const Rows& rows, const Request& request, const Evaluation& out,
                     std::uint64_t* counts, void* workspace) {
    const PreparedModel& model = *static_cast<const PreparedModel*>(prepared);
    return evaluate<RowSource>(model, Source(rows, model.view->n_features), request, out, counts, workspace);
}

template <class Real>
constexpr auto evaluate_dense = evaluate_rows<DenseRows<Real>, DenseSource<Real>>;
template <class Real, class Index>
constexpr auto evaluate_csr = evaluate_rows<CsrRows<Real, Index>, CsrSource<Real, Index>>;

void exp_all(const float* x, float* result, std::size_t n) {
    for (std::size_t i = 0; i + lanes <= n; i += lanes) store(result + i, exp_nonpositive(load(x + i)));
}

std::size_t replay_memory(std::size_t n_features) {
    return replay_bytes(n_features);
}
std::size_t prepared_memory(const ModelView& model) {
    return prepared_bytes(model);
}
std::size_t evaluation_memory(const ModelView& model) {
    return evaluation_workspace_bytes(model);
}
std::size_t exact_replay_memory(const ModelView& model) {
    return exact_replay_bytes(model);
}

}  // namespace APPROXSVM_TABLE

extern const Kernels APPROXSVM_JOIN(kernels_, APPROXSVM_TARGET);
const Kernels APPROXSVM_JOIN(kernels_, APPROXSVM_TARGET) = [] {
    using namespace APPROXSVM_TABLE;
    Kernels k{};
    k.name = APPROXSVM_TARGET_NAME;
    k.block_rows = block_rows;
    k.replay_bytes = replay_memory;
    k.replay_check_rows = replay;
    k.prepared_bytes = prepared_memory;
    k.prepare = prepare_model;
    k.evaluation_workspace_bytes = evaluation_memory;
    k.exact_replay_bytes = exact_replay_memory;
    k.replay_exact_check_rows = replay_exact;
    k.evaluate_dense_f32 = evaluate_dense<float>;
    k.evaluate_dense_f64 = evaluate_dense<double>;
    k.evaluate_csr_f32_i32 = evaluate_csr<float, std::int32_t>;
    k.evaluate_csr_f32_i64 = evaluate_csr<float, std::int64_t>;
    k.evaluate_csr_f64_i32 = evaluate_csr<double, std::int32_t>;
    k.evaluate_csr_f64_i64 = evaluate_csr<double, std::int64_t>;
    k.exp_nonpositive = exp_all;
    return k;
}();

}  // namespace approxsvm::dispatch
