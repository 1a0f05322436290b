// Which instruction sets the CPU has and the operating system enables: it must save the wide registers.
#pragma once

#if defined(__x86_64__) || defined(_M_X64)
#if defined(_WIN32)
#include <intrin.h>
#endif

namespace approxsvm::dispatch {

#if defined(_WIN32)

// By hand, as not every compiler here ships the tables of the built-in.
#if defined(__GNUC__)
__attribute__((target("xsave")))
#endif
inline bool has_features(unsigned leaf_7_ebx, unsigned long long saved_state) {
    int leaf_1[4], leaf_7[4];
    __cpuidex(leaf_1, 1, 0);
    __cpuidex(leaf_7, 7, 0);
    constexpr unsigned fma_osxsave_avx = 1u << 12 | 1u << 27 | 1u << 28;
    return (static_cast<unsigned>(leaf_1[2]) & fma_osxsave_avx) == fma_osxsave_avx &&
           (static_cast<unsigned>(leaf_7[1]) & leaf_7_ebx) == leaf_7_ebx && (_xgetbv(0) & saved_state) == saved_state;
}

inline bool runs_avx2() {
    return has_features(1u << 5, 0x6);
}
inline bool runs_avx512() {
    return has_features(1u << 5 | 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31, 0xe6);  // AVX2, F, DQ, BW, VL
}

#else

// The built-in reads XCR0 as well as CPUID.
inline bool runs_avx2() {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
inline bool runs_avx512() {
    return runs_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

#endif

}  // namespace approxsvm::dispatch
#endif
