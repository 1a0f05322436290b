#pragma once

#include <random>

using Random = std::mt19937_64;

inline double uniform(Random& random, double low, double high) {
    return low + (high - low) * static_cast<double>(random() >> 11) * 0x1p-53;
}
