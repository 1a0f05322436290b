#include "check.hpp"

#include <iostream>
#include <vector>

namespace check {
namespace {

struct Test {
    const char* name;
    void (*body)();
};

std::vector<Test>& tests() {
    static std::vector<Test> all;
    return all;
}

int n_failed_checks = 0;

bool passes(const Test& test) {
    const int n_before = n_failed_checks;
    try {
        test.body();
    } catch (const std::exception& error) {
        report(test.name, 0, std::string("threw '") + error.what() + "'");
    }
    if (n_failed_checks == n_before) return true;
    std::cout << "FAILED " << test.name << '\n';
    return false;
}

bool is_selected(const Test& test, int n_arguments, char** arguments) {
    for (int i = 1; i < n_arguments; ++i) {
        if (std::string(test.name).find(arguments[i]) != std::string::npos) return true;
    }
    return n_arguments <= 1;
}

}  // namespace

Registration::Registration(const char* name, void (*body)()) {
    tests().push_back({name, body});
}

void report(const char* file, int line, const std::string& message) {
    ++n_failed_checks;
    std::cout << file << ':' << line << ": " << message << '\n';
}

void expect(bool holds, const std::string& what) {
    if (!holds) report(__FILE__, __LINE__, what);
}

}  // namespace check

int main(int n_arguments, char** arguments) {
    int n_passed = 0, n_failed = 0;
    for (const check::Test& test : check::tests()) {
        if (check::is_selected(test, n_arguments, arguments)) ++(check::passes(test) ? n_passed : n_failed);
    }
    std::cout << n_passed << " passed, " << n_failed << " failed" << std::endl;
    return n_failed == 0 && n_passed > 0 ? 0 : 1;
}
