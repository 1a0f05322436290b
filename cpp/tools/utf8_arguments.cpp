#include "utf8_arguments.hpp"

#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
// Must be included after windows.h.
#include <shellapi.h>

#include <filesystem>
#endif

namespace approxsvm::tools {

std::vector<std::string> utf8_arguments(int argc, char** argv) {
#if defined(_WIN32)
    (void)argc, (void)argv;  // argv is in the current code page, which may lack characters
    int n = 0;
    std::vector<std::string> arguments;
    if (wchar_t** const words = ::CommandLineToArgvW(::GetCommandLineW(), &n)) {
        for (int i = 1; i < n; ++i) arguments.push_back(std::filesystem::path(words[i]).u8string());
        ::LocalFree(words);
    }
    return arguments;
#else
    return {argv + (argc > 0 ? 1 : 0), argv + argc};
#endif
}

}  // namespace approxsvm::tools
