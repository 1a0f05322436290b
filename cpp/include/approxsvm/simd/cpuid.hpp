// Tests for instructions that the CPU has but the target does not require. This code reads cpuid itself, because zig's
// tables of __builtin_cpu_supports are empty, and clang 18 does not know "avxvnni". The operating system saves the
// registers that these instructions use, because the target uses the same registers.
#ifndef APPROXSVM_SIMD_CPUID_HPP
#define APPROXSVM_SIMD_CPUID_HPP

#include "../version.hpp"

#if defined(__GNUC__) && !defined(_WIN32) && (defined(__x86_64__) || defined(__i386__))
#include <cpuid.h>

#include <initializer_list>

namespace approxsvm {
inline namespace APPROXSVM_VERSION_NAMESPACE {

// Returns register 0 to 3 (eax, ebx, ecx, edx) of a subleaf of leaf 7; 0 if the subleaf does not exist.
inline unsigned cpuid_7(unsigned subleaf, int number) {
    unsigned registers[4] = {};
    for (const unsigned asked : {0u, subleaf}) {
        if (asked > registers[0] ||
            !__get_cpuid_count(7, asked, &registers[0], &registers[1], &registers[2], &registers[3]))
            return 0;
    }
    return registers[number];
}

}  // namespace APPROXSVM_VERSION_NAMESPACE
}  // namespace approxsvm
#endif

#endif
