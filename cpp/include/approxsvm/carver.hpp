// Memory that a caller lends, cut into pieces.
#pragma once

#include <cstddef>
#include <cstdint>

#include "simd/simd.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Hands out pieces of one piece of memory, each on a cache line; with no memory it only counts.
class Carver {
  public:
    explicit Carver(void* memory) : next_(reinterpret_cast<std::uintptr_t>(memory)) {}

    template <class T>
    T* take(std::size_t n) {
        next_ = (next_ + 63) / 64 * 64;
        T* piece = reinterpret_cast<T*>(next_);
        next_ += n * sizeof(T);
        return piece;
    }
    std::size_t used(const void* memory) const { return next_ - reinterpret_cast<std::uintptr_t>(memory); }

  private:
    std::uintptr_t next_;
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm
