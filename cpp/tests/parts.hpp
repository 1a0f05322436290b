#pragma once

#include <algorithm>
#include <approxsvm/exact/winner_engine.hpp>
#include <approxsvm/expansion/router.hpp>
#include <approxsvm/predict/prepare/layout.hpp>
#include <approxsvm/simd/cosine.hpp>
#include <approxsvm/simd/tanh.hpp>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "../dispatch/cpu_features.hpp"
#include "check.hpp"
#include "engine_models.hpp"

// Test programs for parts of the core are compiled once per target and include this file. On a CPU that lacks the
// target's instructions, the whole program is skipped, with exit status 77.

#if defined(APPROXSVM_AVX512) || defined(APPROXSVM_AVX2) || defined(__FMA__)
namespace {

// Runs before all of our static constructors, which the compiler may have vectorized.
__attribute__((constructor(101))) void skip_where_it_cannot_run() {
#if !defined(_WIN32)
    __builtin_cpu_init();
#endif
#if defined(APPROXSVM_AVX512)
    const bool can_run = approxsvm::dispatch::runs_avx512();
#else
    const bool can_run = approxsvm::dispatch::runs_avx2();
#endif
    if (can_run) return;
    std::puts("skipped: this CPU lacks the target's instructions");
    std::fflush(stdout);
    std::_Exit(77);
}

}  // namespace
#endif
