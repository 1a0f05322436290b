// The model in approxsvm.h without exceptions and threads, as in WebAssembly. Its kernels are compiled for the same
// target as this file and run on the caller's thread. Only one call at a time may use a model.
#pragma once

#include <approxsvm/approxsvm.hpp>

#include "memory.hpp"

#define APPROXSVM_TEXT_OF(x) #x
#define APPROXSVM_TEXT(x) APPROXSVM_TEXT_OF(x)

namespace approxsvm {

class OpenedModel {
  public:
    // The bytes must outlive the model. `out_of_memory` is set if memory was exhausted.
    Status open(const unsigned char* bytes, std::size_t n_bytes, bool& out_of_memory) {
        out_of_memory = false;
        const Status opened = model_.open({bytes, n_bytes});
        if (opened != Status::ok) return opened;
        out_of_memory = true;
        if (!memory_.resize(model_.memory_bytes())) return Status::buffer_too_small;
        const Status prepared = model_.prepare({memory_.data(), memory_.size()});
        Memory replay;
        if (!replay.resize(model_.replay_bytes()) || !workspace_.resize(model_.workspace_bytes()))
            return Status::buffer_too_small;
        out_of_memory = false;
        return prepared == Status::ok ? model_.replay({replay.data(), replay.size()}) : prepared;
    }

    // Returns the error message from the last open().
    const char* why(Status status) const { return message(status); }

    const ModelView& view() const { return model_.view(); }
    const char* target() const { return APPROXSVM_TEXT(APPROXSVM_TARGET_WORD); }

    template <class Rows>
    Status evaluate(const Rows& rows, const Evaluation& out, Values values, int, Fault& fault) const {
        return model_.evaluate(rows, out, {workspace_.data(), workspace_.size()}, values, &fault);
    }

  private:
    Model model_;
    Memory memory_, workspace_;
};

}  // namespace approxsvm
