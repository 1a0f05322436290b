// The arguments of a program as UTF-8, for any encoding of main()'s.
#pragma once

#include <string>
#include <vector>

namespace approxsvm::tools {

/// Returns the arguments after the name of the program.
std::vector<std::string> utf8_arguments(int argc, char** argv);

}  // namespace approxsvm::tools
