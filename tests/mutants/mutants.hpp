// Functions called by C++ sources with switches; the environment, or approxsvm_set_mutant, sets the number of the
// disabled place.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace approxsvm_mutants {

constexpr int most_places = 10000;

struct State {
    int active = -1;
    unsigned char reached[most_places] = {};
    State() {
        if (const char* number = std::getenv("APPROXSVM_MUTANT")) active = std::atoi(number);
    }
    ~State() {
        const char* folder = std::getenv("APPROXSVM_MUTANTS_REACHED");
        char path[4096];
        if (!folder || std::snprintf(path, sizeof path, "%s/cpp-%ld", folder, static_cast<long>(getpid())) < 0) return;
        std::FILE* file = std::fopen(path, "a");
        for (int n = 0; file && n < most_places; ++n) {
            if (reached[n]) std::fprintf(file, "%d\n", n);
        }
        if (file) std::fclose(file);
    }
};
inline State state;

// Returns whether place n is disabled; always false while a compiler evaluates constants.
constexpr bool on(int n) {
    if (__builtin_is_constant_evaluated()) return false;
    state.reached[n] = 1;
    return state.active == n;
}
// Returns the value, or zero of its type if place n is disabled.
template <class Term>
constexpr Term nothing(int n, Term value) {
    return on(n) ? Term{} : value;
}

}  // namespace approxsvm_mutants

extern "C" {
__attribute__((used, visibility("default"))) inline void approxsvm_set_mutant(int n) {
    approxsvm_mutants::state.active = n;
}
__attribute__((used, visibility("default"))) inline unsigned char* approxsvm_reached() {
    return approxsvm_mutants::state.reached;
}
}
