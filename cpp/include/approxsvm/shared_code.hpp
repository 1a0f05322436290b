// The C code shared with exported headers (program/), compiled in the target's namespace.
#ifndef APPROXSVM_SHARED_CODE_HPP
#define APPROXSVM_SHARED_CODE_HPP

#include <cmath>
#include <cstdint>

#include "simd/simd.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

#if defined(APPROXSVM_PORTABLE)
#define APPROXSVM_PROGRAM inline  // not forced inline: the code is half as long, and as fast
#else
#define APPROXSVM_PROGRAM APPROXSVM_INLINE
#endif
#define APPROXSVM_ANSWER inline
#define APPROXSVM_BOUND double
#define APPROXSVM_CHECKS 1
#define APPROXSVM_ROOT std::sqrt
#define APPROXSVM_EXP std::exp               // std::exp gives LIBSVM's probabilities bit for bit
#define APPROXSVM_PRODUCT(a, b) ((a) * (b))  // requires -ffp-contract=off
#define APPROXSVM_COUNT(number) static_cast<int>(approxsvm_bits_of_double(number))
#include "program/ball.h"

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif
