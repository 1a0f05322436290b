// Messages about faulty rows, used by all interfaces.
#ifndef APPROXSVM_ROW_FAULT_HPP
#define APPROXSVM_ROW_FAULT_HPP

#include <cstdio>

#include "model_view.hpp"
#include "status.hpp"

namespace approxsvm {
inline namespace APPROXSVM_VERSION_NAMESPACE {

// Returns the description of an op's requirement, to which the message then appends the expected value.
inline const char* domain_of(OpKind kind) {
    switch (kind) {
#define APPROXSVM_DOMAIN(kind, words) \
    case OpKind::kind:                \
        return words;
#include "artifact/schema.inc"
        default:
            return "";
    }
}

// Returns whether a Fault adds details to message() for this status.
inline bool is_of_row(Status status) {
    return status == Status::map_overflow || status == Status::outside_domain || status == Status::beyond_float64 ||
           status == Status::beyond_tolerance || status == Status::unknown_feature;
}

// Returns a lowercase line without the row number, truncated to the available space.
template <std::size_t Size>
inline const char* text_of_fault(Status status, const Fault& fault, char (&room)[Size]) {
    if (status == Status::map_overflow) {
        std::snprintf(room, Size, "scaling its values, the largest of which is %.6g, exceeds the range of %s",
                      fault.found, fault.expected <= 0x1p128 ? "float32" : "float64");
    } else if (status == Status::outside_domain) {
        std::snprintf(room, Size, "%s %.6g, got %.6g", domain_of(fault.step), fault.expected, fault.found);
    } else if (status == Status::beyond_tolerance) {
        std::snprintf(room, Size, "its value is certain to %.3g in float64, and not to the tolerance of %.3g",
                      fault.found, fault.expected);
    } else {
        return message(status);
    }
    return room;
}
constexpr std::size_t fault_text_bytes = 160;

}  // namespace APPROXSVM_VERSION_NAMESPACE
}  // namespace approxsvm

#endif
