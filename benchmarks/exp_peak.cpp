// Prints how many exponentials of float32 per second one core can do by the core's own exp, on registers: the yardstick
// beside fma_peak.cpp. The fastest of some short bursts counts.

#include <chrono>
#include <cstdio>

#include "approxsvm/simd/exp.hpp"

using namespace approxsvm;

constexpr int n_registers = 3;  // side by side: more would not fit with the coefficients
constexpr int n_bursts = 12;
constexpr long n_steps = 200'000;

double burst(float argument) {
    f32v sum[n_registers];
    for (auto& s : sum) s = zero();
    const auto start = std::chrono::steady_clock::now();
    for (long step = 0; step < n_steps; ++step) {
        f32v x[n_registers];
        for (int k = 0; k < n_registers; ++k)
            x[k] = set1(argument * static_cast<float>(k + 1) - 1e-6f * static_cast<float>(step));
        exp_nonpositive(x);
        for (int k = 0; k < n_registers; ++k) sum[k] = add(sum[k], x[k]);
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    float kept[lanes];
    for (int k = 1; k < n_registers; ++k) sum[0] = add(sum[0], sum[k]);
    store(kept, sum[0]);
    volatile float used = kept[0];
    static_cast<void>(used);
    return seconds;
}

int main() {
    double fastest = burst(-1.0f);
    for (int i = 1; i < n_bursts; ++i) {
        const double seconds = burst(-1.0f - static_cast<float>(i));
        if (seconds < fastest) fastest = seconds;
    }
    std::printf("%.6g\n", static_cast<double>(n_steps) * n_registers * lanes / fastest);
}
