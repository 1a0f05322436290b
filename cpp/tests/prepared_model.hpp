#pragma once

#include <type_traits>

#include "exact_memory.hpp"
#include "target_table.hpp"

/// A model laid out for one target, in memory blocks of exactly the requested sizes, filled with one byte value.
class Prepared {
  public:
    Prepared(const approxsvm::ModelView& model, const approxsvm::dispatch::TargetTable& kernels, int fill = 0x5A)
        : kernels_(kernels),
          fill_(fill),
          memory_(kernels.prepared_bytes(model), fill),
          model_(kernels.prepare(model, memory_.data())),
          workspace_(kernels.workspace_bytes(model_), fill) {}

    approxsvm::Status replay() const {
        return kernels_.replay(model_, OddMemory(kernels_.replay_bytes(model_), fill_).data());
    }
    template <class Rows>
    approxsvm::Status evaluate(const Rows& rows, const approxsvm::Request& request, const approxsvm::Evaluation& out,
                               std::uint64_t* counts) const {
        return kernels_.evaluate_rows<Rows>()(model_, rows, request, out, counts, workspace_.data());
    }

  private:
    const approxsvm::dispatch::TargetTable& kernels_;
    int fill_;
    OddMemory memory_;
    const void* model_;
    OddMemory workspace_;
};
