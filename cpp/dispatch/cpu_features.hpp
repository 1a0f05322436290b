// Reports the instruction sets that the CPU supports and the operating system enables (by saving the wide registers).
// This code reads cpuid itself, because zig's tables for __builtin_cpu_supports are empty and some Windows compilers
// lack them.
#pragma once

#if defined(__x86_64__) || defined(_M_X64)
#if defined(_WIN32)
#include <intrin.h>
#else
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace approxsvm::dispatch {

inline void read_cpuid(int leaf, int (&registers)[4]) {
#if defined(_WIN32)
    __cpuidex(registers, leaf, 0);
#else
    __cpuid_count(leaf, 0, registers[0], registers[1], registers[2], registers[3]);
#endif
}

#if defined(__GNUC__)
__attribute__((target("xsave")))
#endif
inline bool has_features(unsigned leaf_7_ebx, unsigned long long saved_state) {
    int leaf_1[4], leaf_7[4];
    read_cpuid(1, leaf_1);
    read_cpuid(7, leaf_7);
    constexpr unsigned fma_osxsave_avx = 1u << 12 | 1u << 27 | 1u << 28;
    return (static_cast<unsigned>(leaf_1[2]) & fma_osxsave_avx) == fma_osxsave_avx &&
           (static_cast<unsigned>(leaf_7[1]) & leaf_7_ebx) == leaf_7_ebx && (_xgetbv(0) & saved_state) == saved_state;
}

inline bool runs_avx2() {
    return has_features(1u << 5, 0x6);
}
inline bool runs_avx512() {
    return has_features(1u << 5 | 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31, 0xe6);  // AVX2 and AVX-512 F, DQ, BW, VL
}

}  // namespace approxsvm::dispatch
#endif
