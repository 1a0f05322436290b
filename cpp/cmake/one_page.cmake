# Combines the web page, its module, approxsvm.wasm and an example into one file, which a browser can open from a disk
# or a server.
#   cmake -DWEB=<folder with these files> -P one_page.cmake
file(READ ${WEB}/index.html page)
file(READ ${WEB}/approxsvm.mjs module)
string(REGEX REPLACE "(^|\n)export " "\\1" module "${module}")
string(REGEX REPLACE "import {[^}]*} from \"./approxsvm.mjs\";" "@approxsvm@" page "${page}")
string(REPLACE "@approxsvm@" "${module}" page "${page}")
foreach(file wasm=approxsvm.wasm example=example.asvm)
  string(REGEX REPLACE "=.*" "" constant ${file})
  string(REGEX REPLACE ".*=" "" name ${file})
  file(READ ${WEB}/${name} bytes HEX)
  string(REPLACE "const ${constant} = new URL(\"${name}\", import.meta.url)"
                 "const ${constant} = Uint8Array.from(\"${bytes}\".match(/../g), (byte) => parseInt(byte, 16))" page "${page}")
endforeach()
file(WRITE ${WEB}/approxsvm.html "${page}")
