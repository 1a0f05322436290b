#include <cstddef>
#include <cstdint>

// For the driver and targets that have no mutator of their own: up to three changes.

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* bytes, std::size_t n_bytes, std::size_t max_bytes);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* bytes, std::size_t n_bytes, std::size_t max_bytes,
                                               unsigned seed);
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* bytes, std::size_t n_bytes, std::size_t max_bytes,
                                               unsigned seed) {
    for (unsigned left = 1 + seed % 3; left > 0; --left) n_bytes = LLVMFuzzerMutate(bytes, n_bytes, max_bytes);
    return n_bytes;
}
