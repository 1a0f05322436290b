// Prints how many bytes per second one core can read from its second-level cache, and from the third: 256 KB and 8 MB
// again and again, by the widest loads there are. The fastest of some short bursts counts.

#include <chrono>
#include <cstdio>
#include <vector>

#include "approxsvm/simd/simd.hpp"

using namespace approxsvm;

constexpr std::size_t near = 1 << 16, far = 1 << 21;  // floats
constexpr int n_bursts = 12;

// Seconds for a number of passes.
double burst(const float* numbers, std::size_t n, int n_passes) {
    f32v sum[8];
    for (auto& s : sum) s = zero();
    const auto start = std::chrono::steady_clock::now();
    for (int pass = 0; pass < n_passes; ++pass) {
        for (std::size_t i = 0; i < n; i += 8 * lanes) {
            for (std::size_t k = 0; k < 8; ++k) sum[k] = max_or(load(numbers + i + k * lanes), sum[k]);
        }
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    float kept[lanes];
    for (int k = 1; k < 8; ++k) sum[0] = add(sum[0], sum[k]);
    store(kept, sum[0]);
    volatile float used = kept[0];
    static_cast<void>(used);
    return seconds;
}

double bytes_per_second(const std::vector<float>& numbers, std::size_t n, int n_passes) {
    double fastest = burst(numbers.data(), n, n_passes);
    for (int i = 1; i < n_bursts; ++i) {
        const double seconds = burst(numbers.data(), n, n_passes);
        if (seconds < fastest) fastest = seconds;
    }
    return static_cast<double>(n) * sizeof(float) * n_passes / fastest;
}

int main() {
    const std::vector<float> numbers(far, 1.0f);
    std::printf("%.6g %.6g\n", bytes_per_second(numbers, near, 200), bytes_per_second(numbers, far, 6));
}
