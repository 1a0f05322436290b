// A program's arguments in UTF-8, whatever the encoding of main()'s arguments.
#pragma once

#include <string>
#include <vector>

namespace approxsvm::tools {

/// Returns the arguments after the program name.
std::vector<std::string> utf8_arguments(int argc, char** argv);

}  // namespace approxsvm::tools
