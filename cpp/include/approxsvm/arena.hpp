// Divides a caller-provided block of memory.
#ifndef APPROXSVM_ARENA_HPP
#define APPROXSVM_ARENA_HPP

#include <cstddef>
#include <cstdint>

#include "simd/simd.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Allocates consecutive regions of one block; each begins a new cache line. An arena without memory only counts bytes.
// On 32-bit systems, a small file may request more than half of the address space; such a request is treated as too
// large.
class Arena {
  public:
    explicit Arena(void* memory) : start_(reinterpret_cast<std::uintptr_t>(memory)) {}

    // Returns space for n_items * of_each elements. The product may exceed 32 bits.
    template <class T>
    T* take(std::size_t n_items, std::size_t of_each = 1) {
        if (has_32_bits && used_ == too_many_bytes) return nullptr;
        used_ = (start_ + used_ + 63) / 64 * 64 - start_;
        T* piece = reinterpret_cast<T*>(start_ + used_);
        const std::uint64_t n_bytes = capped(capped(std::uint64_t{n_items} * sizeof(T)) * of_each);
        used_ =
            has_32_bits && used_ + n_bytes > most_bytes ? too_many_bytes : used_ + static_cast<std::size_t>(n_bytes);
        return piece;
    }

    // Number of bytes sufficient for all regions, wherever the block begins; the largest size_t if it is too large.
    std::size_t bytes_anywhere() const {
        const std::size_t before_first = used_ == 0 ? 0 : (0 - start_) % 64;
        return used_ == too_many_bytes ? too_many_bytes : used_ - before_first + 64;
    }

  private:
    static constexpr bool has_32_bits = sizeof(std::size_t) < sizeof(std::uint64_t);
    static constexpr std::size_t too_many_bytes = ~std::size_t{0}, most_bytes = too_many_bytes / 2 - 64;

    // Caps a size at 2^32 on 32-bit systems, so that its product with another size_t fits in 64 bits.
    static constexpr std::uint64_t capped(std::uint64_t n_bytes) {
        constexpr std::uint64_t limit = std::uint64_t{1} << 32;
        return has_32_bits && n_bytes > limit ? limit : n_bytes;
    }

    const std::uintptr_t start_;
    std::size_t used_ = 0;
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif
