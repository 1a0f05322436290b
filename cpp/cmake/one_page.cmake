# The page with its modules and approxsvm.wasm inside it: one file, which opens from a disk as well as from a server.
#   cmake -DWEB=<folder with approxsvm.wasm and the sources of the page> -P one_page.cmake
file(READ ${WEB}/index.html page)
foreach(name approxsvm libsvm_model)
  file(READ ${WEB}/${name}.mjs module)
  string(REGEX REPLACE "(^|\n)export " "\\1" module "${module}")
  string(REGEX REPLACE "import {[^}]*} from \"./${name}.mjs\";" "@${name}@" page "${page}")
  string(REPLACE "@${name}@" "${module}" page "${page}")
endforeach()
file(READ ${WEB}/approxsvm.wasm wasm HEX)
string(REPLACE "const wasm = new URL(\"approxsvm.wasm\", import.meta.url)"
               "const wasm = Uint8Array.from(\"${wasm}\".match(/../g), (byte) => parseInt(byte, 16))" page "${page}")
file(WRITE ${WEB}/approxsvm.html "${page}")
