#include "artifact_mutator.hpp"

#include <algorithm>
#include <approxsvm/schema.hpp>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <type_traits>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* bytes, std::size_t n_bytes, std::size_t max_bytes);

namespace artifact_mutator {
namespace {

using artifact_writer::get;
using artifact_writer::put;
using artifact_writer::Section;

constexpr std::size_t header_bytes = 192, entry_bytes = 24, file_bytes_at = 16, n_sections_at = 12;
constexpr std::uint32_t most_sections = approxsvm::max_sections;

std::size_t below(Random& random, std::size_t n) {
    return n == 0 ? 0 : random() % n;
}

template <class T, std::size_t n>
T one_of(Random& random, const T (&values)[n]) {
    return values[below(random, n)];
}

// --- an artifact as header and sections

struct Parts {
    Bytes header;
    std::vector<Section> sections;
};

/// Splits an artifact according to its section table, and truncates sections that extend beyond its bytes.
Parts parts_of(const Bytes& bytes) {
    Parts parts{{bytes.begin(), bytes.begin() + header_bytes}, {}};
    const std::size_t n = std::min<std::size_t>(get<std::uint32_t>(bytes, n_sections_at), most_sections);
    for (std::size_t k = 0; k < n && header_bytes + (k + 1) * entry_bytes <= bytes.size(); ++k) {
        const std::size_t entry = header_bytes + k * entry_bytes;
        const std::uint64_t first = std::min<std::uint64_t>(get<std::uint64_t>(bytes, entry + 8), bytes.size());
        const std::uint64_t size = std::min<std::uint64_t>(get<std::uint64_t>(bytes, entry + 16), bytes.size() - first);
        const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(first);
        parts.sections.push_back(
            {get<std::uint32_t>(bytes, entry), {begin, begin + static_cast<std::ptrdiff_t>(size)}});
    }
    return parts;
}

/// Lays out the artifact as the format requires, with sections sorted by identifier.
Bytes joined(Parts parts) {
    std::stable_sort(parts.sections.begin(), parts.sections.end(),
                     [](const Section& a, const Section& b) { return a.identifier < b.identifier; });
    return artifact_writer::laid_out(std::move(parts.header), parts.sections);
}

// --- numbers

/// Returns a number that is unusual in itself, or one close to the old number.
template <class T>
T odd_number(Random& random, T old) {
    using Limits = std::numeric_limits<T>;
    constexpr T most = Limits::max();
    if constexpr (std::is_integral_v<T>) {
        const T odd[] = {0, 1, 2, 3, 16, 255, 1024, 4096, 65535, 65536, 1 << 20, (1 << 20) + 1, most / 2, most};
        const T near[] = {static_cast<T>(old + 1), static_cast<T>(old - 1),
                          static_cast<T>(old ^ T{1} << below(random, 8 * sizeof(T)))};
        return below(random, 4) == 0 ? one_of(random, odd) : one_of(random, near);
    } else {
        const T odd[] = {T{0},
                         -T{0},
                         T{1},
                         T{-1},
                         T(0.5),
                         T(1e-30),
                         T(1e30),
                         -most,
                         most,
                         Limits::min(),
                         -Limits::infinity(),
                         Limits::epsilon(),
                         Limits::denorm_min(),
                         Limits::infinity(),
                         Limits::quiet_NaN()};
        const T near[] = {-old, old * T{2}, old * T(0.5), old * T(1.0 + 1e-3)};
        return below(random, 5) == 0 ? one_of(random, odd) : one_of(random, near);
    }
}

/// Changes one number of the given kind: 'I' and 'Q' are integers of 4 and 8 bytes, 'f' and 'd' are floats, and
/// anything else is a byte.
void change_number(Bytes& bytes, std::size_t at, char kind, Random& random) {
    switch (kind) {
        case 'I':
            return put(bytes, at, odd_number(random, get<std::uint32_t>(bytes, at)));
        case 'Q':
            return put(bytes, at, odd_number(random, get<std::uint64_t>(bytes, at)));
        case 'f':
            return put(bytes, at, odd_number(random, get<float>(bytes, at)));
        case 'd':
            return put(bytes, at, odd_number(random, get<double>(bytes, at)));
        default:
            bytes[at] = static_cast<unsigned char>(random());
    }
}

std::size_t bytes_of_kind(char kind) {
    return kind == 'I' || kind == 'f' ? 4 : kind == 'B' ? 1 : 8;
}

// --- changes

/// The fields after the checksum, in format order.
struct Field {
    std::size_t at;
    char kind;
};
constexpr Field fields[] = {{28, 'I'},  {32, 'I'},  {36, 'I'},  {40, 'Q'},  {56, 'I'},  {60, 'I'},  {64, 'd'},
                            {72, 'd'},  {80, 'd'},  {88, 'd'},  {96, 'd'},  {104, 'I'}, {108, 'I'}, {112, 'I'},
                            {116, 'I'}, {120, 'I'}, {124, 'B'}, {140, 'I'}, {176, 'Q'}, {184, 'I'}, {188, 'I'}};

void change_header(Parts& parts, Random& random) {
    const Field field = one_of(random, fields);
    change_number(parts.header, field.at, field.kind, random);
}

/// The kinds of the numbers in each section with a layout in artifact/schema.inc, in order.
std::map<std::uint32_t, std::string> kinds_of_sections() {
    std::map<std::uint32_t, std::string> kinds;
    std::map<std::string, std::string> groups;
    std::string* in = nullptr;
#define APPROXSVM_LAYOUT(tag, part, view) in = &kinds[approxsvm::section::tag];
#define APPROXSVM_GROUP(tag, Group, Section) in = &groups[#tag];
#define APPROXSVM_NUMBER(tag, type, name, words, rule) *in += std::is_integral_v<type> ? 'I' : 'd';
#define APPROXSVM_NUMBERS(tag, type, name, words, count, rule) \
    *in += std::is_integral_v<type> ? 'I' : sizeof(type) == 4 ? 'f' : 'd';
#define APPROXSVM_RECORDS(tag, Record, name, count) *in += 'd';
#define APPROXSVM_GROUPS(tag, group, Group, name, count) *in += groups[#group];
#include <approxsvm/artifact/schema.inc>
    return kinds;
}

/// Returns the type of some number in the section's layout, if it has one, and now and then any other type.
char kind_of(std::uint32_t identifier, Random& random) {
    static const auto kinds = kinds_of_sections();
    constexpr char any[] = {'I', 'Q', 'f', 'd', 'B'};
    const auto found = kinds.find(identifier);
    const bool known = found != kinds.end() && below(random, 3) > 0;
    return known ? found->second[below(random, found->second.size())] : one_of(random, any);
}

void change_section_number(Parts& parts, Random& random) {
    Section& section = parts.sections[below(random, parts.sections.size())];
    const char kind = kind_of(section.identifier, random);
    const std::size_t width = bytes_of_kind(kind), n = section.content.size() / width;
    if (n == 0) return;
    // Counts are at the start of a section.
    const std::size_t place = below(random, below(random, 2) == 0 ? std::min<std::size_t>(n, 48 / width) : n);
    change_number(section.content, place * width, kind, random);
}

/// Removes, repeats or overwrites some of a section's bytes.
void change_section_extent(Parts& parts, Random& random) {
    Bytes& content = parts.sections[below(random, parts.sections.size())].content;
    constexpr std::size_t units[] = {1, 4, 8, 24, 32, 64, 144};
    const std::size_t unit = one_of(random, units), n = unit * (1 + below(random, 4));
    if (content.size() < n) return content.resize(content.size() + unit);
    const std::size_t first = below(random, (content.size() - n) / unit + 1) * unit;
    const auto begin = content.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = begin + static_cast<std::ptrdiff_t>(n);
    const Bytes piece(begin, end);
    switch (below(random, 3)) {
        case 0:
            content.erase(begin, end);
            break;
        case 1:
            content.insert(end, piece.begin(), piece.end());
            break;
        default:
            std::copy(piece.begin(), piece.end(),
                      content.begin() + static_cast<std::ptrdiff_t>(below(random, content.size() - n + 1)));
    }
}

/// Removes a section, changes its identifier, or gives it another section's contents.
void change_sections(Parts& parts, Random& random) {
    const std::size_t k = below(random, parts.sections.size());
    const std::uint32_t identifier = 1 + static_cast<std::uint32_t>(below(random, most_sections));
    switch (below(random, 4)) {
        case 0:
            parts.sections.erase(parts.sections.begin() + static_cast<std::ptrdiff_t>(k));
            break;
        case 1:
            parts.sections.push_back({identifier, parts.sections[k].content});
            break;
        case 2:
            parts.sections[k].identifier = identifier;
            break;
        default:
            parts.sections[k].content = parts.sections[below(random, parts.sections.size())].content;
    }
}

/// Makes the check rows accept any value, so that later code is reached whatever the coefficients are.
void forgive_check_rows(Parts& parts) {
    for (Section& section : parts.sections) {
        if (section.identifier != artifact_writer::check_rows &&
            section.identifier != artifact_writer::exact_check_rows)
            continue;
        for (std::size_t at = 16; at + 8 <= section.content.size(); at += 24) put(section.content, at, 1e300);
    }
}

void mutate_bytes(Bytes& bytes, std::size_t most) {
    const std::size_t n = bytes.size();
    bytes.resize(std::max(n, most));
    bytes.resize(LLVMFuzzerMutate(bytes.data(), n, bytes.size()));
}

/// Changes an artifact inside a section: a subspace's expansion, or one of an ensemble's members.
void change_inner_artifact(Parts& parts, Random& random, int depth) {
    for (Section& section : parts.sections) {
        if (section.identifier != artifact_writer::members && section.identifier != artifact_writer::subspace_expansion)
            continue;
        std::vector<Bytes> inner;
        for (std::size_t at = 0; at + header_bytes <= section.content.size();) {
            const std::uint64_t size = get<std::uint64_t>(section.content, at + file_bytes_at);
            if (size < header_bytes || size > section.content.size() - at) break;
            const auto begin = section.content.begin() + static_cast<std::ptrdiff_t>(at);
            inner.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(size));
            at += static_cast<std::size_t>(size);
        }
        if (inner.empty() || depth > 1) return;
        Bytes& chosen = inner[below(random, inner.size())];
        chosen = mutated(chosen, random, depth + 1);
        section.content.clear();
        for (const Bytes& one : inner) section.content.insert(section.content.end(), one.begin(), one.end());
    }
}

void change(Parts& parts, Random& random, int depth) {
    if (parts.sections.empty()) return change_header(parts, random);
    switch (below(random, 12)) {
        case 0:
            return change_section_extent(parts, random);
        case 1:
            return change_sections(parts, random);
        case 2:
            return forgive_check_rows(parts);
        case 3:
        case 4:
            return change_header(parts, random);
        case 5:
        case 6:
            return change_inner_artifact(parts, random, depth);
        case 7: {
            Bytes& content = parts.sections[below(random, parts.sections.size())].content;
            return mutate_bytes(content, content.size() + 64);
        }
        default:
            return change_section_number(parts, random);
    }
}

}  // namespace

Input::Input(const std::uint8_t* bytes, std::size_t n_bytes) : artifact(bytes, bytes + n_bytes) {
    if (n_bytes < header_bytes) return;
    const std::uint64_t n_own = get<std::uint64_t>(artifact, file_bytes_at);
    if (n_own >= header_bytes && n_own < n_bytes) {
        rest.assign(bytes + n_own, bytes + n_bytes);
        artifact.resize(static_cast<std::size_t>(n_own));
    }
    std::copy(std::begin(artifact_writer::first_bytes), std::end(artifact_writer::first_bytes), artifact.begin());
    artifact_writer::seal(artifact);
}

Bytes mutated(const Bytes& artifact, Random& random, int depth) {
    Parts parts = parts_of(artifact);
    for (std::size_t left = 1 + below(random, 4); left > 0; --left) change(parts, random, depth);
    Bytes bytes = joined(std::move(parts));
    if (below(random, 24) > 0) return bytes;
    // The section table itself, or bytes between sections.
    bytes[below(random, bytes.size())] = static_cast<unsigned char>(random());
    artifact_writer::seal(bytes);
    return bytes;
}

}  // namespace artifact_mutator

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* bytes, std::size_t n_bytes, std::size_t max_bytes,
                                               unsigned seed) {
    artifact_mutator::Random random(seed);
    artifact_mutator::Input input(bytes, n_bytes);
    if (input.artifact.size() < 192) return LLVMFuzzerMutate(bytes, n_bytes, max_bytes);
    if (random() % 6 == 0) {
        artifact_mutator::mutate_bytes(input.rest, 256);
    } else {
        input.artifact = artifact_mutator::mutated(input.artifact, random);
    }
    if (input.artifact.size() > max_bytes) return LLVMFuzzerMutate(bytes, n_bytes, max_bytes);
    const std::size_t n_rest = std::min(input.rest.size(), max_bytes - input.artifact.size());
    std::memcpy(bytes, input.artifact.data(), input.artifact.size());
    if (n_rest > 0) std::memcpy(bytes + input.artifact.size(), input.rest.data(), n_rest);
    return input.artifact.size() + n_rest;
}
