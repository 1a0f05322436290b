# find_package(approxsvm CONFIG): approxsvm::approxsvm, the headers; approxsvm::runtime, the library behind approxsvm.h.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
include("${CMAKE_CURRENT_LIST_DIR}/approxsvm-targets.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/approxsvm-flags.cmake")
