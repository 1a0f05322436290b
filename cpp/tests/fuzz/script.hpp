#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

// Shared by all fuzz targets: reporting a finding, and reading the input as a script.

namespace fuzz {

inline void require(bool holds, const std::string& what) {
    if (holds) return;
    std::fprintf(stderr, "%s\n", what.c_str());
    std::abort();
}

/// The input, number by number; zeros after its end.
class Script {
  public:
    Script(const std::uint8_t* bytes, std::size_t n_bytes) : next_(bytes), left_(n_bytes) {}
    template <class T>
    T take() {
        T value{};
        const std::size_t n = std::min(left_, sizeof value);
        if (n > 0) std::memcpy(&value, next_, n);
        next_ += n, left_ -= n;
        return value;
    }
    std::size_t below(std::size_t n) { return take<std::uint16_t>() % n; }
    bool is_done() const { return left_ == 0; }

  private:
    const std::uint8_t* next_;
    std::size_t left_;
};

}  // namespace fuzz
