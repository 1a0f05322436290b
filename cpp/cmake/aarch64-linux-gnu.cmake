# Cross-compiles for 64-bit Arm Linux and runs the tests under QEMU:
#
#   cmake -S . -B build/aarch64 -G Ninja -DCMAKE_TOOLCHAIN_FILE=cpp/cmake/aarch64-linux-gnu.cmake \
#     -DAPPROXSVM_BUILD_TESTS=ON && cmake --build build/aarch64 && ctest --test-dir build/aarch64/cpp --output-on-failure

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
# Programs are linked statically, so the emulator needs no libraries for the other architecture.
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)
