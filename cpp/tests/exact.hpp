#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>

/// A heap array of exactly that many elements, so that AddressSanitizer sees the first one beyond. Until somebody
/// writes to it, it holds what nobody would write by chance.
template <class T>
struct Exact {
    explicit Exact(std::size_t n) : size(n), data(new T[n]) { std::memset(data.get(), untouched, n * sizeof(T)); }
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
