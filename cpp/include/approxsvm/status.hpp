// The errors of the native core and their messages. Nothing here prints, throws or allocates.
#pragma once

namespace approxsvm {

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

}  // namespace approxsvm
