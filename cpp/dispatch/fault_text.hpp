// Faults of artifacts as messages.
#pragma once

#include <approxsvm/artifact/fault.hpp>
#include <string>

namespace approxsvm::dispatch {

// A line in lower case that names section, field and both numbers, such as "n_labels is 1, expected at least 2". A
// fault without numbers gives message() of its status.
std::string text_of(Status status, const ArtifactFault& fault);

}  // namespace approxsvm::dispatch
