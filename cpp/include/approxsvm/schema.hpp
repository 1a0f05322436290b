// The types defined by artifact/schema.inc, which specifies the .asvm format.
#ifndef APPROXSVM_SCHEMA_HPP
#define APPROXSVM_SCHEMA_HPP

#include <cstddef>
#include <cstdint>

#include "version.hpp"

namespace approxsvm {
inline namespace APPROXSVM_VERSION_NAMESPACE {

#define APPROXSVM_LIMIT(type, name, value) constexpr type name = value;
#define APPROXSVM_RECORD(Name, tag) struct Name {
#define APPROXSVM_FIELD(tag, type, name) type name;
#define APPROXSVM_ARRAY(tag, type, name, n) type name[n];
#define APPROXSVM_ENUMERATION(Name, name) enum class Name : std::uint32_t {
#define APPROXSVM_ENUMERATOR(name, number) name = number,
#define APPROXSVM_END \
    }                 \
    ;
#include "artifact/schema.inc"

namespace section {
enum Id : std::uint32_t {
    none = 0,
#define APPROXSVM_SECTION(name, identifier, needed, optional) name = identifier,
#include "artifact/schema.inc"
    end
};
}  // namespace section
constexpr std::size_t max_sections = section::end - 1;

// Names of fields and parts, each qualified by a record or section.
namespace field {
enum Id : std::uint32_t {
    none = 0,
#define APPROXSVM_FIELD(tag, type, name) tag##_##name,
#define APPROXSVM_ARRAY(tag, type, name, n) tag##_##name,
#define APPROXSVM_PART(tag, name, words) tag##_##name,
#include "artifact/schema.inc"
};
}

// Calls visit(field, number) for each number in a record, in order, including every array element.
#define APPROXSVM_RECORD(Name, tag) \
    template <class Visit>          \
    inline void for_numbers(const Name& record, const Visit& visit) {
#define APPROXSVM_FIELD(tag, type, name) visit(field::tag##_##name, record.name);
#define APPROXSVM_ARRAY(tag, type, name, n) \
    for (const type number : record.name) visit(field::tag##_##name, number);
#define APPROXSVM_ENUMERATION(Name, name) namespace name##_numbers {
#define APPROXSVM_END }
#include "artifact/schema.inc"

constexpr std::size_t header_bytes = sizeof(Header), section_entry_bytes = sizeof(SectionEntry);
constexpr std::size_t check_row_bytes = sizeof(CheckRecord), checksum_offset = offsetof(Header, checksum);
static_assert(header_bytes == 192 && section_entry_bytes == 24, "records have no gaps");

}  // namespace APPROXSVM_VERSION_NAMESPACE
}  // namespace approxsvm

#endif
