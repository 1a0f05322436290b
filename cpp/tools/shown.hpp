// Formats numbers as printf does, but faster.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdio>
#include <string>

namespace approxsvm::tools {

/// "%.17g" writes at most 24 bytes: sign, 17 digits, point, "e-308".
inline constexpr std::size_t max_real_bytes = 24;

/// Appends a number as printf's "%.<precision>g" would.
inline void append(std::string& out, double value, int precision) {
    char text[max_real_bytes + 1];
#if defined(__cpp_lib_to_chars) && __cpp_lib_to_chars >= 201611L
    const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::general, precision);
    out.append(text, end.ptr);
#else
    out.append(text, static_cast<std::size_t>(std::snprintf(text, sizeof text, "%.*g", precision, value)));
#endif
}

inline std::string shown(double value, int precision = 17) {
    std::string text;
    append(text, value, precision);
    return text;
}

/// Formats a number as printf's "%g" would.
inline std::string short_number(double value) {
    return shown(value, 6);
}

}  // namespace approxsvm::tools
