// Error messages for faulty artifacts.
#pragma once

#include <approxsvm/artifact/fault.hpp>
#include <string>

namespace approxsvm::dispatch {

// Returns a lower-case line that names the section, the field and both numbers, such as "n_labels is 1, expected at
// least 2". A fault without numbers gives the message() of its status.
std::string text_of(Status status, const ArtifactFault& fault);

}  // namespace approxsvm::dispatch
