// The parts that models are made of. A program that names those of its models compiles nothing else:
//
//     approxsvm::ModelOf<approxsvm::rbf, approxsvm::scalers, approxsvm::batches> model;
//
// `approxsvm inspect model.asvm` prints this line. No model needs `batches`: it is for calls of many rows. Functions
// that depend on the list have it as a template parameter.
#pragma once

#include <cstdint>

namespace approxsvm {

enum Part : std::uint32_t {
#define APPROXSVM_MODEL_PART(name, bit, words) name = std::uint32_t{1} << bit,
#include "parts.inc"
};

// Any number of parts, a bit each.
using Parts = std::uint32_t;
constexpr Parts all_parts = 0
#define APPROXSVM_MODEL_PART(name, bit, words) | name
#include "parts.inc"
    ;

constexpr bool has(Parts parts, Part part) {
    return (parts & part) != 0;
}

// With the parts that others are made of.
constexpr Parts with_implied(Parts parts) {
    if (has(parts, ensembles)) parts |= probabilities;
    if (has(parts, text_columns)) parts |= pipelines;
    if (has(parts, pipelines)) parts |= scalers;
    return parts;
}

// What is wrong with a list that leaves out a part, null where it leaves out none.
constexpr const char* what_to_add(Parts missing) {
#define APPROXSVM_MODEL_PART(name, bit, words) \
    if (has(missing, name)) return "add approxsvm::" #name " (" words ") to the list of approxsvm::ModelOf";
#include "parts.inc"
    return nullptr;
}

// A member of a class that a list may leave out; it is then nothing, made of anything.
struct LeftOut {
    template <class... Arguments>
    constexpr explicit LeftOut(const Arguments&...) {}
};
template <bool IsThere, class Member>
struct MemberOf {
    using type = Member;
};
template <class Member>
struct MemberOf<false, Member> {
    using type = LeftOut;
};
template <Parts parts, Part part, class Member>
using IfPart = typename MemberOf<has(parts, part), Member>::type;

}  // namespace approxsvm
