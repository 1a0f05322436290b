# find_package(approxsvm CONFIG) defines approxsvm::approxsvm, the headers, and approxsvm::runtime, the library of
# approxsvm.h.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
include("${CMAKE_CURRENT_LIST_DIR}/approxsvm-targets.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/approxsvm-flags.cmake")
