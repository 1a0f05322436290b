// Heap memory whose functions report failures through return values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

namespace approxsvm {

class Memory {
  public:
    // Keeps the contents, and allocates more memory than requested if the growth is small. Returns false if the heap is
    // exhausted.
    bool resize(std::size_t n_bytes) {
        // No object is larger than PTRDIFF_MAX; near SIZE_MAX, some allocators wrap around.
        if (n_bytes > PTRDIFF_MAX) return false;
        if (n_bytes > capacity_) {
            const std::size_t wanted = n_bytes / 2 > capacity_ ? n_bytes : n_bytes + capacity_ / 2;
            void* const grown = std::realloc(bytes_.get(), wanted);
            if (!grown) return false;
            static_cast<void>(bytes_.release());
            bytes_.reset(static_cast<unsigned char*>(grown));
            capacity_ = wanted;
        }
        size_ = n_bytes;
        return true;
    }

    unsigned char* data() const { return bytes_.get(); }
    std::size_t size() const { return size_; }

  private:
    struct Free {
        void operator()(unsigned char* bytes) const { std::free(bytes); }
    };

    std::unique_ptr<unsigned char, Free> bytes_;  // malloc aligns to at least eight bytes
    std::size_t size_ = 0, capacity_ = 0;
};

}  // namespace approxsvm
