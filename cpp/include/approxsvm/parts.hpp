// The parts of models. A program that lists its models' parts compiles only these:
//
//     approxsvm::ModelOf<approxsvm::rbf, approxsvm::scalers, approxsvm::batches> model;
//
// `approxsvm inspect model.asvm` prints this line. No model requires `batches`, which speeds up calls with many rows.
// Functions that depend on the list take it as a template parameter.
#ifndef APPROXSVM_PARTS_HPP
#define APPROXSVM_PARTS_HPP

#include <cstddef>
#include <cstdint>

#include "version.hpp"

namespace approxsvm {
inline namespace APPROXSVM_VERSION_NAMESPACE {

enum Part : std::uint32_t {
#define APPROXSVM_MODEL_PART(name, bit, words) name = std::uint32_t{1} << bit,
#include "parts.inc"
};

// A set of parts, with one bit per part.
using Parts = std::uint32_t;
constexpr Parts all_parts = 0
#define APPROXSVM_MODEL_PART(name, bit, words) | name
#include "parts.inc"
    ;

constexpr bool has(Parts parts, Part part) {
    return (parts & part) != 0;
}

// Adds the other parts that the given ones need.
constexpr Parts with_implied(Parts parts) {
    if (has(parts, ensembles)) parts |= probabilities;
    if (has(parts, text_columns)) parts |= pipelines;
    if (has(parts, pipelines)) parts |= scalers;
    return parts;
}

// A list of parts in C++ syntax: the type of a model with these parts.
class ListOfParts {
  public:
    explicit ListOfParts(Parts parts) {
        add("approxsvm::ModelOf<");
        const char* between = "";
#define APPROXSVM_MODEL_PART(name, bit, words) \
    if (has(parts, name)) add(between), add("approxsvm::" #name), between = ", ";
#include "parts.inc"
        add(">");
    }
    const char* c_str() const { return text_; }

  private:
    void add(const char* words) {
        while (*words) text_[n_++] = *words++;
    }

    static constexpr std::size_t longest = sizeof("approxsvm::ModelOf<>")
#define APPROXSVM_MODEL_PART(name, bit, words) +sizeof("approxsvm::" #name ", ")
#include "parts.inc"
        ;
    char text_[longest] = {};
    std::size_t n_ = 0;
};

// A class member that a list of parts may omit. An omitted member is empty and can be constructed from any arguments.
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

}  // namespace APPROXSVM_VERSION_NAMESPACE
}  // namespace approxsvm

#endif
