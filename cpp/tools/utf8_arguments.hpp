// The arguments of a program as UTF-8, whatever the system hands to main().
#pragma once

#include <string>
#include <vector>

namespace approxsvm::tools {

/// Those behind the name of the program.
std::vector<std::string> utf8_arguments(int argc, char** argv);

}  // namespace approxsvm::tools
