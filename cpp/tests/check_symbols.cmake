# cmake -DNM=<nm> -DTARGET=<name> -DOBJECTS=<object files> -P check_symbols.cmake
#
# The objects of one target contain instructions that other machines may lack. Two things would let this code run there:
# * a weak symbol (types W, V, u) outside the target's own namespaces: the linker keeps one of several equal names, and
#   may choose this one for the whole program;
# * a static constructor: it runs before dispatch has examined the CPU.

if(NOT NM OR NOT EXISTS "${NM}")
  message("skipped: no nm")
  return()
endif()

set(allowed "approxsvm::(v[0-9]+_${TARGET}|dispatch::(table_of|kernels)_${TARGET})::")
set(n_weak 0)
foreach(object IN LISTS OBJECTS)
  execute_process(COMMAND "${NM}" -C "${object}" OUTPUT_VARIABLE symbols RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "${NM} cannot read ${object}")
  endif()
  string(REPLACE ";" "," symbols "${symbols}")
  string(REPLACE "\n" ";" symbols "${symbols}")
  foreach(symbol IN LISTS symbols)
    if(symbol MATCHES "^[0-9a-f]+ [WVu] (.*)$")
      math(EXPR n_weak "${n_weak} + 1")
      set(name "${CMAKE_MATCH_1}")
      # DW.ref. is a pointer used by exception tables: data, the same for every target.
      if(NOT name MATCHES "${allowed}" AND NOT name MATCHES "^DW\\.ref\\.")
        set(failures YES)
        message(SEND_ERROR "${object} defines the weak symbol ${name} outside ${allowed}")
      endif()
    elseif(symbol MATCHES "_GLOBAL__sub_I|__cxx_global_var_init|__static_initialization_and_destruction")
      set(failures YES)
      message(SEND_ERROR "${object} has a static constructor: ${symbol}")
    endif()
  endforeach()
endforeach()
if(NOT failures)
  message(STATUS "${n_weak} weak symbols, all inside the namespaces of ${TARGET}; no static constructor")
endif()
