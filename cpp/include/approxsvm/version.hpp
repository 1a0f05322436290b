// The version of these headers. This file has no include guard. Functions and types of different versions are in
// separate namespaces, so that a program's source files may use different versions. Each file may include only one.
#if !defined(APPROXSVM_HEADERS)
#define APPROXSVM_HEADERS 100  // 10000 major + 100 minor + patch
#if defined(_MSVC_LANG) ? _MSVC_LANG < 201703L : __cplusplus < 201703L
#error "approxsvm needs C++17: compile with -std=c++17 or later, /std:c++17 in Visual Studio"
#endif
#define APPROXSVM_JOIN_OF(a, b) a##b
#define APPROXSVM_JOIN(a, b) APPROXSVM_JOIN_OF(a, b)
#define APPROXSVM_VERSION_NAMESPACE APPROXSVM_JOIN(v, APPROXSVM_HEADERS)
#elif APPROXSVM_HEADERS != 100
#error "this file includes two versions of approxsvm's headers: write all with one version of approxsvm export --hpp"
#endif
