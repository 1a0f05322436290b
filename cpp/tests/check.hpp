#pragma once

#include <exception>
#include <sstream>
#include <string>
#include <type_traits>

// A test program is one source file that includes this header and holds TEST(name) { ... } blocks; main is in
// check.cpp. A failed check prints its place and values and lets the test go on. The last line of output
// is "N passed, M failed", counted in tests, and the exit status is 1 when a test failed or none ran.
// Arguments, if any, are parts of names: only matching tests run.

namespace check {

struct Registration {
    Registration(const char* name, void (*body)());
};

void report(const char* file, int line, const std::string& message);
void expect(bool holds, const std::string& what);

template <class T, class = void>
struct IsPrintable : std::false_type {};
template <class T>
struct IsPrintable<T, std::void_t<decltype(std::declval<std::ostream&>() << std::declval<const T&>())>>
    : std::true_type {};

template <class T>
std::string show(const T& value) {
    std::ostringstream out;
    out.precision(17);
    if constexpr (IsPrintable<T>::value) {
        out << value;
    } else if constexpr (std::is_enum_v<T>) {
        out << +static_cast<std::underlying_type_t<T>>(value);
    } else {
        out << "(unprintable)";
    }
    return out.str();
}

template <class A, class B>
void equal(const char* file, int line, const char* expression, const A& actual, const B& expected) {
    if (actual == expected) return;
    report(file, line, std::string(expression) + " is " + show(actual) + ", expected " + show(expected));
}

template <class Function>
void throws_with(const char* file, int line, const char* expression, Function function, const std::string& part) {
    try {
        function();
    } catch (const std::exception& error) {
        const std::string message = error.what();
        if (message.find(part) != std::string::npos) return;
        return report(file, line, std::string(expression) + " throws '" + message + "' without '" + part + "'");
    }
    report(file, line, std::string(expression) + " does not throw");
}

}  // namespace check

#define TEST(name)                                                               \
    static void test_##name();                                                   \
    static const check::Registration registration_of_##name(#name, test_##name); \
    static void test_##name()

#define CHECK(condition) ((condition) ? void() : check::report(__FILE__, __LINE__, "not true: " #condition))
// What is reported by an expect() in scope, put together only where it is: texts cost more than what they tell.
#define EXPECT(holds, ...) ((holds) ? void() : expect(false, __VA_ARGS__))
#define CHECK_EQ(actual, expected) check::equal(__FILE__, __LINE__, #actual, actual, expected)
#define CHECK_THROWS_WITH(expression, part) \
    check::throws_with(__FILE__, __LINE__, #expression, [&] { static_cast<void>(expression); }, part)
