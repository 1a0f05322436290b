// Prints the peak rates of one core, per second: float32 multiply-adds and exponentials (the library's exp), both on
// registers; and bytes read with the widest loads from the L2 and L3 caches (256 KB and 8 MB, read repeatedly). Each
// rate is measured in the fastest of several short bursts, because other programs can only slow a burst down.

#include <chrono>
#include <cstdio>
#include <vector>

#include "approxsvm/simd/exp.hpp"

using namespace approxsvm;

constexpr int n_bursts = 12;
constexpr int n_sums = 12;                            // independent, to hide latency; they fit in the registers
constexpr int n_arguments = 3;                        // for exp: with its coefficients, no more fit in registers
constexpr std::size_t near = 1 << 16, far = 1 << 21;  // floats

void keep(const f32v* sums, int n) {
    static volatile float used;
    float kept[lanes];
    for (int k = 0; k < n; ++k) {
        store(kept, sums[k]);
        used = kept[0];
    }
}

// Returns the rate of the operations in `burst(k)`, per second.
template <class Burst>
double per_second(double how_often, const Burst& burst) {
    double fastest = 1e9;
    for (int k = 0; k < n_bursts; ++k) {
        const auto start = std::chrono::steady_clock::now();
        burst(k);
        const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        if (seconds < fastest) fastest = seconds;
    }
    return how_often / fastest;
}

double multiply_adds() {
    constexpr long n_steps = 250'000;
    return per_second(static_cast<double>(n_steps) * n_sums * lanes, [](int k) {
        f32v sums[n_sums];
        volatile float factor = 0.5f;
        const f32v x = set1(factor), y = set1(static_cast<float>(k));
        APPROXSVM_UNROLL for (int i = 0; i < n_sums; ++i) sums[i] = set1(static_cast<float>(i));
        for (long step = 0; step < n_steps; ++step) {
            APPROXSVM_UNROLL for (int i = 0; i < n_sums; ++i) sums[i] = fmadd(x, sums[i], y);
        }
        keep(sums, n_sums);
    });
}

double exponentials() {
    constexpr long n_steps = 100'000;
    return per_second(static_cast<double>(n_steps) * n_arguments * lanes, [](int k) {
        f32v sums[n_arguments], x[n_arguments];
        const float argument = -1.0f - static_cast<float>(k);
        APPROXSVM_UNROLL for (int i = 0; i < n_arguments; ++i) sums[i] = zero();
        for (long step = 0; step < n_steps; ++step) {
            APPROXSVM_UNROLL for (int i = 0; i < n_arguments; ++i) {
                x[i] = set1(argument * static_cast<float>(i + 1) - 1e-6f * static_cast<float>(step));
            }
            exp_nonpositive(x);
            APPROXSVM_UNROLL for (int i = 0; i < n_arguments; ++i) sums[i] = add(sums[i], x[i]);
        }
        keep(sums, n_arguments);
    });
}

double bytes(const std::vector<float>& numbers, std::size_t n, int n_passes) {
    return per_second(static_cast<double>(n) * sizeof(float) * n_passes, [&](int) {
        f32v sums[8];
        APPROXSVM_UNROLL for (int k = 0; k < 8; ++k) sums[k] = zero();
        for (int pass = 0; pass < n_passes; ++pass) {
            for (std::size_t i = 0; i < n; i += 8 * lanes) {
                APPROXSVM_UNROLL for (int k = 0; k < 8; ++k) {
                    sums[k] = max_or(load(numbers.data() + i + static_cast<std::size_t>(k * lanes)), sums[k]);
                }
            }
        }
        keep(sums, 8);
    });
}

int main() {
    const std::vector<float> numbers(far, 1.0f);
    std::printf("%.6g %.6g %.6g %.6g\n", multiply_adds(), exponentials(), bytes(numbers, near, 100),
                bytes(numbers, far, 3));
}
