#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

/// A heap array of exactly n elements, so that AddressSanitizer detects any access beyond it. Initially it holds values
/// that no code would write by chance.
template <class T>
struct Exact {
    explicit Exact(std::size_t n) : size(n), data(new T[n]) { std::memset(data.get(), untouched, n * sizeof(T)); }
    explicit Exact(const std::vector<T>& values) : Exact(values.size()) {
        std::copy(values.begin(), values.end(), data.get());
    }
    bool operator==(const Exact& other) const {
        return size == other.size && std::memcmp(data.get(), other.data.get(), size * sizeof(T)) == 0;
    }
    bool is_untouched() const {
        const auto* bytes = reinterpret_cast<const unsigned char*>(data.get());
        return std::all_of(bytes, bytes + size * sizeof(T), [](unsigned char byte) { return byte == untouched; });
    }

    static constexpr unsigned char untouched = 0x5A;
    std::size_t size;
    std::unique_ptr<T[]> data;
};

/// Memory of exactly n_bytes that begins one byte after the start of a cache line, so that no spare bytes are left
/// after it is aligned.
class OddMemory {
  public:
    explicit OddMemory(std::size_t n_bytes, int fill = 0x5A) : bytes_(new (line) unsigned char[n_bytes + 1]) {
        std::memset(data(), fill, n_bytes);
    }
    void* data() const { return bytes_.get() + 1; }

  private:
    static constexpr std::align_val_t line{64};
    struct Delete {
        void operator()(unsigned char* bytes) const { ::operator delete[](bytes, line); }
    };
    std::unique_ptr<unsigned char[], Delete> bytes_;
};
