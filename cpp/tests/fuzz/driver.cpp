// A fuzz target without libFuzzer: the files of a folder whose names end so, then so many changes of them; or, of a
// target that takes any bytes, so many of those. Always the same ones.
//
//     fuzz_NAME_driver CHANGES [FOLDER SUFFIX]

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t n_bytes);
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* bytes, std::size_t n_bytes, std::size_t max_bytes);
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* bytes, std::size_t n_bytes, std::size_t max_bytes,
                                               unsigned seed);

namespace {

using Bytes = std::vector<std::uint8_t>;

std::mt19937& random_numbers() {
    static std::mt19937 numbers(7);
    return numbers;
}

std::size_t below(std::size_t n) {
    return n == 0 ? 0 : random_numbers()() % n;
}

/// The bytes of a text that readers of numbers may stumble over.
const std::string& odd_token() {
    static const std::vector<std::string> tokens = {"-1",
                                                    "0",
                                                    "1e999",
                                                    "-1e-999",
                                                    "nan",
                                                    "inf",
                                                    "0x1p3",
                                                    "2147483647",
                                                    "2147483648",
                                                    "-2147483649",
                                                    "9223372036854775808",
                                                    ":",
                                                    "1:",
                                                    ":1",
                                                    "\n",
                                                    "\r\n",
                                                    "\t ",
                                                    "nr_sv",
                                                    "total_sv",
                                                    "nr_class",
                                                    "SV",
                                                    "1e5000000000",
                                                    "00000000000000000000000000000001",
                                                    "+",
                                                    ".",
                                                    "e"};
    return tokens[below(tokens.size())];
}

/// In an allocation of its own size. Whether it is of interest, as an artifact that opens is.
bool run(const Bytes& bytes) {
    const std::unique_ptr<std::uint8_t[]> copy(new std::uint8_t[bytes.size()]);
    std::copy(bytes.begin(), bytes.end(), copy.get());
    return LLVMFuzzerTestOneInput(copy.get(), bytes.size()) == 0;
}

constexpr std::size_t most_bytes = std::size_t{1} << 15;  // larger files take too long for what they add

std::vector<Bytes> files_of(const char* folder, const char* suffix) {
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        if (entry.path().extension() == suffix && entry.file_size() <= most_bytes) paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());
    std::vector<Bytes> files;
    for (const auto& path : paths) {
        std::ifstream file(path, std::ios::binary);
        files.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
    return files;
}

Bytes any_bytes() {
    Bytes bytes(below(200));
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(below(256));
    return bytes;
}

}  // namespace

/// One change: a bit, a byte, a token, a piece left out or doubled.
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* bytes, std::size_t n_bytes, std::size_t max_bytes) {
    Bytes changed(bytes, bytes + n_bytes);
    const std::size_t at = below(n_bytes), n = std::min<std::size_t>(1 + below(16), n_bytes - at);
    const auto place = changed.begin() + static_cast<std::ptrdiff_t>(at);
    const auto end = place + static_cast<std::ptrdiff_t>(n);
    const std::size_t kind = n_bytes == 0 ? 4 : below(5);
    if (kind == 0) *place = static_cast<std::uint8_t>(*place ^ 1u << below(8));
    if (kind == 1) *place = static_cast<std::uint8_t>(below(256));
    if (kind == 2) changed.erase(place, end);
    if (kind == 3) {
        const Bytes piece(place, end);
        changed.insert(place, piece.begin(), piece.end());
    }
    if (kind == 4) {
        const std::string& token = odd_token();
        changed.insert(place, token.begin(), token.end());
    }
    changed.resize(std::min(changed.size(), max_bytes));
    std::copy(changed.begin(), changed.end(), bytes);
    return changed.size();
}

int main(int n_arguments, char** arguments) {
    if (n_arguments != 2 && n_arguments != 4) {
        std::fprintf(stderr, "usage: %s CHANGES [FOLDER SUFFIX]\n", arguments[0]);
        return 2;
    }
    const long n_changes = std::atol(arguments[1]);
    const std::vector<Bytes> files = n_arguments == 4 ? files_of(arguments[2], arguments[3]) : std::vector<Bytes>{};
    if (n_arguments == 4 && files.empty()) {
        std::fprintf(stderr, "no files\n");
        return 2;
    }
    for (const Bytes& file : files) {
        if (run(file)) continue;
        std::fprintf(stderr, "a file is not what the target is for\n");
        return 1;
    }
    long n_of_interest = 0;
    for (long k = 0; k < n_changes; ++k) {
        Bytes bytes = files.empty() ? any_bytes() : files[static_cast<std::size_t>(k) % files.size()];
        const std::size_t n = bytes.size();
        bytes.resize(n + 512);
        const auto seed = static_cast<unsigned>(random_numbers()());
        bytes.resize(LLVMFuzzerCustomMutator(bytes.data(), n, bytes.size(), seed));
        n_of_interest += run(bytes) ? 1 : 0;
    }
    std::printf("%zu files and %ld changes, of which %ld are still of interest\n", files.size(), n_changes,
                n_of_interest);
    return n_of_interest > n_changes / 20 ? 0 : 1;
}
