// What a reader of artifacts refuses, in words.
#pragma once

#include <approxsvm/artifact/fault.hpp>
#include <string>

namespace approxsvm::dispatch {

// A line in lower case that names section, field and both numbers, such as "n_labels is 1, expected at least 2";
// what message() says of the status where there are no numbers.
std::string text_of(Status status, const ArtifactFault& fault);

}  // namespace approxsvm::dispatch
