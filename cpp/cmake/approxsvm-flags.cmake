# Warns about missing flags in a project that uses the headers. Programs that link to the library need no flags.
get_property(told GLOBAL PROPERTY APPROXSVM_FLAGS_TOLD)
if(NOT told AND NOT CMAKE_CROSSCOMPILING)
  set_property(GLOBAL PROPERTY APPROXSVM_FLAGS_TOLD ON)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES AND NOT CMAKE_CXX_FLAGS MATCHES "(^| )[-/]O[1-3sg]")
    message(WARNING "approxsvm: no build type is set, so programs with the headers are compiled without optimization and "
                    "predict some fifty times as slowly: cmake -DCMAKE_BUILD_TYPE=Release")
  endif()
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$" AND NOT MSVC AND NOT CMAKE_CXX_FLAGS MATCHES "-m(arch|avx)")
    message(NOTICE "approxsvm: no instruction set is set, so programs with the headers use that of the first x86-64 "
                   "processors: -DCMAKE_CXX_FLAGS=-march=x86-64-v3, or native, predicts several times as fast")
  endif()
endif()
