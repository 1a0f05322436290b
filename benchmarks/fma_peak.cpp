// Prints how many float32 multiply-adds per second one core can do: the yardstick for the share of peak.
//
// The accumulators are independent, so that latency is hidden, and inline assembly with register operands keeps them
// out of memory and the compiler out of the arithmetic. The fastest of some short bursts counts: whatever else runs on
// the machine can only slow a burst down.

#include <chrono>
#include <cstdio>
#include <utility>

#if defined(__AVX512F__)
typedef float Vector __attribute__((vector_size(64)));
constexpr int n_accumulators = 24;  // of 32 registers
inline void multiply_add(Vector& sum, const Vector& x, const Vector& y) {
    asm volatile("vfmadd231ps %1, %2, %0" : "+v"(sum) : "v"(x), "v"(y));
}
#elif defined(__FMA__)
typedef float Vector __attribute__((vector_size(32)));
constexpr int n_accumulators = 12;  // of 16 registers
inline void multiply_add(Vector& sum, const Vector& x, const Vector& y) {
    asm volatile("vfmadd231ps %1, %2, %0" : "+x"(sum) : "x"(x), "x"(y));
}
#elif defined(__SSE2__)
typedef float Vector __attribute__((vector_size(16)));
constexpr int n_accumulators = 8;  // of 16 registers; the products take some
inline void multiply_add(Vector& sum, const Vector& x, const Vector& y) {
    Vector product = x;
    asm volatile("mulps %1, %0" : "+x"(product) : "x"(y));
    asm volatile("addps %1, %0" : "+x"(sum) : "x"(product));
}
#elif defined(__aarch64__)
typedef float Vector __attribute__((vector_size(16)));
constexpr int n_accumulators = 24;  // of 32 registers; four pipes of latency 4 need 16
inline void multiply_add(Vector& sum, const Vector& x, const Vector& y) {
    asm volatile("fmla %0.4s, %1.4s, %2.4s" : "+w"(sum) : "w"(x), "w"(y));
}
#else
#error "no multiply-add is written for this instruction set"
#endif

constexpr int n_lanes = static_cast<int>(sizeof(Vector) / sizeof(float));
constexpr int n_bursts = 12;
constexpr long n_steps = 500'000;

// Seconds for n_steps multiply-adds into each accumulator. The indices are constants, so the array lives in registers.
template <int... k>
double burst(std::integer_sequence<int, k...>) {
    Vector sums[n_accumulators] = {};
    const Vector x = Vector{} + 0.5F;
    const Vector y = Vector{} + 0.25F;
    const auto start = std::chrono::steady_clock::now();
    for (long step = 0; step < n_steps; ++step) (multiply_add(sums[k], x, y), ...);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

int main() {
    double fastest = burst(std::make_integer_sequence<int, n_accumulators>());
    for (int i = 1; i < n_bursts; ++i) {
        const double seconds = burst(std::make_integer_sequence<int, n_accumulators>());
        if (seconds < fastest) fastest = seconds;
    }
    std::printf("%.6g\n", static_cast<double>(n_steps) * n_accumulators * n_lanes / fastest);
}
