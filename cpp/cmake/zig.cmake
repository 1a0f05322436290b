# Cross-compiles with zig (pip install ziglang), which includes libraries for other systems:
#
#   cmake -S . -B build/windows -G Ninja -DCMAKE_TOOLCHAIN_FILE=cpp/cmake/zig.cmake -DZIG_TARGET=x86_64-windows-gnu \
#     -DAPPROXSVM_BUILD_TESTS=ON && cmake --build build/windows && ctest --test-dir build/windows  # under Wine, if installed
#
# Other targets: x86_64-macos and aarch64-macos, whose programs run only on macOS; aarch64-linux-musl; the 32-bit
# targets x86-linux-musl and arm-linux-musleabihf; wasm32-wasi, for which only the WebAssembly module is built.

set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ZIG_TARGET ZIG)
find_program(ZIG zig REQUIRED)
if(NOT ZIG_TARGET MATCHES "^([a-z0-9_]+)-([a-z]+)")
  message(FATAL_ERROR "ZIG_TARGET has to say what to compile for, such as x86_64-windows-gnu, and is '${ZIG_TARGET}'")
endif()
set(CMAKE_SYSTEM_PROCESSOR ${CMAKE_MATCH_1})
set(zig_system ${CMAKE_MATCH_2})
if(zig_system STREQUAL "windows")
  set(CMAKE_SYSTEM_NAME Windows)
  find_program(WINE NAMES wine64 wine HINTS /usr/lib/wine)
  if(WINE)
    set(CMAKE_CROSSCOMPILING_EMULATOR ${WINE})
  endif()
elseif(zig_system STREQUAL "macos")
  set(CMAKE_SYSTEM_NAME Darwin)
elseif(zig_system STREQUAL "wasi")
  set(CMAKE_SYSTEM_NAME Generic)
else()
  set(CMAKE_SYSTEM_NAME Linux)
  string(REGEX REPLACE "^x86$" "i386" qemu_processor ${CMAKE_SYSTEM_PROCESSOR})
  set(CMAKE_CROSSCOMPILING_EMULATOR qemu-${qemu_processor})
endif()
set(CMAKE_C_COMPILER ${ZIG} cc -target ${ZIG_TARGET})
set(CMAKE_CXX_COMPILER ${ZIG} c++ -target ${ZIG_TARGET})
foreach(tool AR RANLIB)
  string(TOLOWER ${tool} name)
  set(script ${CMAKE_BINARY_DIR}/zig-${name})
  if(NOT EXISTS ${script})
    file(WRITE ${script} "#!/bin/sh\nexec ${ZIG} ${name} \"$@\"\n")
    execute_process(COMMAND chmod +x ${script})
  endif()
  set(CMAKE_${tool} ${script} CACHE FILEPATH "")
endforeach()
