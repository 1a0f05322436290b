// The native core's errors and their messages. No function prints, throws or allocates memory.
#ifndef APPROXSVM_STATUS_HPP
#define APPROXSVM_STATUS_HPP

#include "version.hpp"

namespace approxsvm {
inline namespace APPROXSVM_VERSION_NAMESPACE {

enum class Status {
#define APPROXSVM_STATUS(name, code, message) name,
#include "status.inc"
};

constexpr const char* message(Status status) {
    switch (status) {
#define APPROXSVM_STATUS(name, code, message) \
    case Status::name:                        \
        return message;
#include "status.inc"
    }
    return "unknown status";
}

}  // namespace APPROXSVM_VERSION_NAMESPACE
}  // namespace approxsvm

#endif
