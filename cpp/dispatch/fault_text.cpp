#include "fault_text.hpp"

#include <algorithm>
#include <approxsvm/artifact/labels.hpp>
#include <cstdio>

namespace approxsvm::dispatch {
namespace {

const char* const names_of_sections[] = {
    "",
#define APPROXSVM_SECTION(name, identifier, needed, optional) #name,
#include <approxsvm/artifact/schema.inc>
};

const char* const names_of_fields[] = {
    "",
#define APPROXSVM_FIELD(tag, type, name) #name,
#define APPROXSVM_ARRAY(tag, type, name, n) #name,
#define APPROXSVM_PART(tag, name, words) words,
#include <approxsvm/artifact/schema.inc>
};

#define APPROXSVM_ENUMERATION(Name, name) [[maybe_unused]] const char* const names_of_##name[] = {
#define APPROXSVM_ENUMERATOR(name, number) #name,
#define APPROXSVM_RECORD(Name, tag) [[maybe_unused]] const char* const fields_of_##tag[] = {
#define APPROXSVM_FIELD(tag, type, name) #name,
#define APPROXSVM_ARRAY(tag, type, name, n) #name,
#define APPROXSVM_END \
    }                 \
    ;
#include <approxsvm/artifact/schema.inc>

std::string text_of(double number) {
    char room[label_digits];
    return std::string(digits_of(number, room));
}

std::string text_of(const StoredNumber& number) {
    return number.is_whole() ? std::to_string(number.whole()) : text_of(number.real());
}

std::string power_of_two(const StoredNumber& number) {
    int exponent;
    std::frexp(number.real(), &exponent);
    return "2^" + std::to_string(exponent - 1);
}

std::string text_of(const Expected& expected) {
    const StoredNumber &low = expected.low, &high = expected.high;
    switch (expected.rule) {
        case Rule::equal:
            return text_of(low);
        case Rule::not_equal:
            return "any number but " + text_of(low);
        case Rule::from_to:
            return low.is_whole() && low.whole() == high.whole() ? text_of(low) : text_of(low) + " to " + text_of(high);
        case Rule::from_below:
            return text_of(low) + " to below " + text_of(high);
        case Rule::at_least:
            return !low.is_whole() && low.real() == -largest_double ? "a number above -inf"
                                                                    : "at least " + text_of(low);
        case Rule::above:
            return "more than " + text_of(low);
        case Rule::finite:
            return "a finite number";
        case Rule::finite_at_least:
            return "a finite number of at least " + text_of(low.real());
        case Rule::not_nan:
            return "a number";
        case Rule::power_of_two:
            return "a power of two from " + power_of_two(low) + " to " + power_of_two(high);
        case Rule::zero_or_modulus:
            return "0 or a modulus from " + power_of_two(low) + " to " + power_of_two(high);
        case Rule::multiple_of:
            return "a multiple of " + text_of(low);
        case Rule::one_sign:
            return "the sign of " + text_of(low) + ", which is in the same list";
        case Rule::utf8:
            return "UTF-8";
        case Rule::text_above:
            return "above text " + text_of(low);
        case Rule::distinct:
            return "another than label " + text_of(low);
        case Rule::some_label_of_ensemble:
            return "one of the ensemble's";
        case Rule::ascends:  // reported as a fault of from_to
        case Rule::newer_format:
        case Rule::none_in_mode:
        case Rule::needed_in_mode:
            break;
    }
    return "";
}

std::string hexadecimal(std::uint64_t bytes, std::size_t n_bytes, const char* between) {
    std::string text;
    for (std::size_t k = 0; k < n_bytes; ++k) {
        char room[4];
        std::snprintf(room, sizeof room, "%02x", static_cast<unsigned>(bytes >> (8 * k) & 0xFF));
        text += (k > 0 ? between : "") + std::string(room);
    }
    return text;
}

// Formats a checksum as eight hexadecimal digits.
std::string checksum_text(std::uint64_t checksum) {
    char room[12];
    std::snprintf(room, sizeof room, "%08lx", static_cast<unsigned long>(checksum));
    return room;
}

// Returns the name of the faulty field.
std::string subject(const ArtifactFault& fault) {
    const std::string section = names_of_sections[fault.section];
    if (fault.field == field::any_size) return section.empty() ? "the file" : "section " + section;
    std::string text = names_of_fields[fault.field];
    if (fault.index != no_index) {
        if (fault.field >= field::entry_identifier && fault.field <= field::entry_size) text += " of table entry";
        if (fault.field >= field::op_kind && fault.field <= field::op_n_outputs) text += " of op";
        text += " " + std::to_string(fault.index);
    }
    return section.empty() ? text : text + " of section " + section;
}

// Explains a wrong file size; printed after the actual and expected sizes.
std::string why_size(const ArtifactFault& fault) {
    if (fault.member != no_member || fault.in_subspace_expansion || fault.section != 0) return "";
    const std::uint64_t found = fault.found.whole(), expected = fault.expected.low.whole();
    if (fault.field == field::any_size) return found < expected ? ": it is truncated" : "";
    if (fault.field != field::header_file_bytes) return "";
    return found > expected ? ": it is truncated" : ": something follows the artifact in the file";
}

// Describes the first bytes of a file that is not an artifact; LIBSVM models begin with svm_type.
std::string first_bytes(const ArtifactFault& fault) {
    std::string text;
    for (std::uint64_t k = 0; k < fault.index; ++k) text += static_cast<char>(fault.found.whole() >> (8 * k) & 0xFF);
    if (text == "svm_type") return "this is a LIBSVM model; approxsvm convert-model compiles it";
    const std::string line = text.substr(0, text.find_first_of("\r\n"));
    const bool is_text = std::all_of(line.begin(), line.end(), [](char c) { return c >= ' ' && c <= '~'; });
    if (is_text && !line.empty()) return "it begins with '" + line + "'";
    return "magic is " + hexadecimal(fault.found.whole(), text.size(), " ") + ", expected " +
           hexadecimal(fault.expected.low.whole(), 8, " ");
}

std::string statement(const ArtifactFault& fault) {
    const Expected& expected = fault.expected;
    if (fault.field == field::header_magic) return "not an approxsvm artifact: " + first_bytes(fault);
    if (fault.field == field::header_checksum)
        return "checksum is " + checksum_text(fault.found.whole()) + ", expected " +
               checksum_text(expected.low.whole()) + ": the file is damaged";
    if (expected.rule == Rule::none_in_mode || expected.rule == Rule::needed_in_mode) {
        const char* const what = expected.rule == Rule::none_in_mode ? " is found in" : " is missing from";
        return subject(fault) + what + " a " + names_of_task[fault.found.whole()] + " artifact of mode " +
               names_of_mode[expected.low.whole()] + " and kernel " + names_of_kernel[expected.high.whole()];
    }
    if (expected.rule == Rule::newer_format)
        return "version is " + text_of(fault.found) + ", which approxsvm " +
               std::to_string(expected.high.whole() >> 8) + "." + std::to_string(expected.high.whole() & 0xFF) +
               " and later read, expected " + text_of(expected.low);
    // For this field, the expected size is the one declared by the file.
    if (fault.field == field::header_file_bytes && fault.member == no_member)
        return "the file has " + text_of(expected.low) + " bytes, expected " + text_of(fault.found);
    if (fault.field == field::any_size)
        return subject(fault) + " has " + text_of(fault.found) + " bytes, expected " + text_of(expected);
    const bool is_text = fault.field == field::any_label && fault.found.is_whole();
    return subject(fault) + (is_text ? " is text " : " is ") + text_of(fault.found) + ", expected " + text_of(expected);
}

}  // namespace

std::string text_of(Status status, const ArtifactFault& fault) {
    if (fault.field == field::none) return message(status);
    std::string where;
    if (fault.member != no_member) where += "member " + std::to_string(fault.member) + ": ";
    if (fault.in_subspace_expansion) where += "section subspace_expansion: ";
    return where + statement(fault) + why_size(fault);
}

}  // namespace approxsvm::dispatch
