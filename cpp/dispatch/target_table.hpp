// One table of functions per target. The core headers are compiled once per target; the rest of the program calls them
// only through these tables.
#pragma once

#include <approxsvm/model_view.hpp>
#include <approxsvm/status.hpp>
#include <string>
#include <vector>

#include "gram_powers.hpp"
#include "kernel_block.hpp"

namespace approxsvm::dispatch {

// A function that calls answer() from approxsvm/predict/predict.hpp. `prepared` is the result of TargetTable::prepare.
template <class Rows>
using EvaluateFunction = Status (*)(const void* prepared, const Rows&, const Request&, const Evaluation&,
                                    std::uint64_t* counts, void* workspace);

// Functions for one row type.
template <class Rows>
struct FunctionFor {
    EvaluateFunction<Rows> function;
};
template <class... Rows>
struct FunctionsFor : FunctionFor<Rows>... {};
using EvaluateFunctions =
    FunctionsFor<DenseRows<float>, DenseRows<double>, CsrRows<float, std::int32_t>, CsrRows<float, std::int64_t>,
                 CsrRows<double, std::int32_t>, CsrRows<double, std::int64_t>>;

struct TargetTable {
    const char* name;
    std::size_t block_rows;
    std::size_t (*prepared_bytes)(const ModelView&);
    const void* (*prepare)(const ModelView&, void* memory);
    std::size_t (*workspace_bytes)(const void* prepared);
    double (*few_values_work)(const void* prepared);  // work per support vector (multiply-adds); 0 if unused
    std::size_t (*replay_bytes)(const void* prepared);
    Status (*replay)(const void* prepared, void* memory);  // replays the check rows
    EvaluateFunctions evaluate;
    void (*gram_powers)(const GramPowers&);
    void (*kernel_block)(KernelBlock&);

    template <class Rows>
    EvaluateFunction<Rows> evaluate_rows() const {
        return static_cast<const FunctionFor<Rows>&>(evaluate).function;
    }
};

// The built-in targets that can run on this machine, fastest first.
const std::vector<const TargetTable*>& runnable_targets();

// Returns the target named by APPROXSVM_TARGET, or else the fastest one. Throws std::runtime_error if the name is
// unknown or this machine cannot run the target: a forced target never falls back.
const TargetTable& selected_target();

// Returns the target with this name. Throws in the same cases as selected_target(), with `asked_by` in the message.
const TargetTable& target_named(const std::string& name, const std::string& asked_by);

}  // namespace approxsvm::dispatch
