// Error messages for faulty artifacts.
#pragma once

#include <approxsvm/artifact/fault.hpp>
#include <string>

namespace approxsvm::dispatch {

// Returns a lower-case line with the section, the field, and the actual and expected values, such as "n_labels is 1,
// expected at least 2". For a fault without values, returns message() of the status.
std::string text_of(Status status, const ArtifactFault& fault);

}  // namespace approxsvm::dispatch
