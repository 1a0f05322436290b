// Compiled once per target, with the target's flags and its name in APPROXSVM_TARGET_NAME.
#include <approxsvm/approxsvm.hpp>

#include "target_table.hpp"

#define APPROXSVM_TEXT_OF(x) #x
#define APPROXSVM_TEXT(x) APPROXSVM_TEXT_OF(x)
#define APPROXSVM_TABLE APPROXSVM_JOIN(table_of_, APPROXSVM_TARGET_WORD)

namespace approxsvm::dispatch {
namespace APPROXSVM_TABLE {

constexpr bool same(const char* a, const char* b) {
    return *a == *b && (*a == 0 || same(a + 1, b + 1));
}
static_assert(same(APPROXSVM_TEXT(APPROXSVM_TARGET_WORD), APPROXSVM_TARGET_NAME),
              "the compiler flags give another target");

const PreparedModel& prepared_model(const void* prepared) {
    return *static_cast<const PreparedModel*>(prepared);
}

template <class Rows>
Status evaluate_rows(const void* prepared, const Rows& rows, const Request& request, const Evaluation& out,
                     std::uint64_t* counts, void* workspace) {
    const PreparedModel& model = prepared_model(prepared);
    return with_source(rows, *model.view,
                       [&](const RowSource& source) { return answer(model, source, request, out, counts, workspace); });
}
template <class... Rows>
constexpr FunctionsFor<Rows...> all_functions(const FunctionsFor<Rows...>&) {
    return {{evaluate_rows<Rows>}...};
}

}  // namespace APPROXSVM_TABLE

extern const TargetTable APPROXSVM_JOIN(kernels_, APPROXSVM_TARGET_WORD);
const TargetTable APPROXSVM_JOIN(kernels_, APPROXSVM_TARGET_WORD) = [] {
    using namespace APPROXSVM_TABLE;
    TargetTable k{};
    k.name = APPROXSVM_TARGET_NAME;
    k.block_rows = block_rows;
    k.prepared_bytes = [](const ModelView& model) { return prepared_bytes(model); };
    k.prepare = [](const ModelView& model, void* memory) -> const void* { return &lay_out(model, memory); };
    k.workspace_bytes = [](const void* prepared) { return workspace_bytes(prepared_model(prepared)); };
    k.few_values_work = [](const void* prepared) {
        const FewValues& few = prepared_model(prepared).few;
        return few.is_usable ? few.work : 0.0;
    };
    k.replay_bytes = [](const void* prepared) { return replay_bytes(prepared_model(prepared)); };
    k.replay = [](const void* prepared, void* memory) { return replay(prepared_model(prepared), memory); };
    k.evaluate = all_functions(EvaluateFunctions{});
    k.gram_powers = gram_powers;
    k.kernel_block = kernel_block;
    return k;
}();

}  // namespace approxsvm::dispatch
