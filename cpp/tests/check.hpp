#pragma once

#include <exception>
#include <random>
#include <sstream>
#include <string>
#include <type_traits>

// A test program consists of one or several source files that include this header and contain TEST(name) { ... }
// blocks; main is in check.cpp. A failed check prints its location and values, and the test continues. The last line of
// output, "N passed, M failed", counts tests; the exit status is 1 if a test failed or none ran. Arguments, if any, are
// substrings of test names: only matching tests run.

namespace check {

struct Registration {
    Registration(const char* name, void (*body)());
};

void report(const char* file, int line, const std::string& message);
void expect(bool holds, const std::string& what);

template <class T>
std::string show(const T& value) {
    std::ostringstream out;
    out.precision(17);
    if constexpr (std::is_enum_v<T>) {
        out << +static_cast<std::underlying_type_t<T>>(value);
    } else {
        out << value;
    }
    return out.str();
}

template <class A, class B>
void equal(const char* file, int line, const char* expression, const A& actual, const B& expected) {
    if (actual == expected) return;
    report(file, line, std::string(expression) + " is " + show(actual) + ", expected " + show(expected));
}

/// Returns the message of the exception that a function throws, or "" if the function throws none.
template <class Function>
std::string thrown_by(Function function) {
    try {
        function();
    } catch (const std::exception& error) {
        return error.what();
    }
    return "";
}

}  // namespace check

/// A source of random numbers.
using Random = std::mt19937_64;
inline double uniform(Random& random, double low, double high) {
    return low + (high - low) * static_cast<double>(random() >> 11) * 0x1p-53;
}

#define TEST(name)                                                               \
    static void test_##name();                                                   \
    static const check::Registration registration_of_##name(#name, test_##name); \
    static void test_##name()

#define CHECK(condition) ((condition) ? void() : check::report(__FILE__, __LINE__, "not true: " #condition))
// Calls the expect() in scope if a condition fails. Its arguments are evaluated only in that case, because strings are
// slow to build.
#define EXPECT(holds, ...) ((holds) ? void() : expect(false, __VA_ARGS__))
#define CHECK_EQ(actual, expected) check::equal(__FILE__, __LINE__, #actual, actual, expected)
