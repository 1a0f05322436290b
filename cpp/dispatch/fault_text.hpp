// Error messages for faulty artifacts.
#pragma once

#include <approxsvm/artifact/fault.hpp>
#include <string>

namespace approxsvm::dispatch {

// Returns a line in lower case with section, field, actual and expected number, such as "n_labels is 1, expected at
// least 2". For a fault without numbers, returns the message() of its status.
std::string text_of(Status status, const ArtifactFault& fault);

}  // namespace approxsvm::dispatch
