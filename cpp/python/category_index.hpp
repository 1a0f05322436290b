// Finds the code of a string with one hash lookup instead of a dozen steps of binary search in the artifact.
#pragma once

#include <approxsvm/approxsvm.hpp>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace approxsvm::python {

// The strings of a column by their hashes. No input makes lookups slow: if some string is further than max_probes from
// its slot, the table is discarded. Columns with few strings have no table, as searching is faster.
class CategoryIndex {
  public:
    explicit CategoryIndex(const ColumnTexts& texts) : texts_(texts) {
        if (texts.n < least_texts) return;
        std::size_t n_slots = 2 * least_texts;
        while (n_slots < 2 * texts.n) n_slots *= 2;
        slots_.assign(n_slots, Slot{0, empty});
        for (std::size_t k = 0; k < texts.n && !slots_.empty(); ++k) {
            if (!insert(hash_of(texts.text(k)), static_cast<std::uint32_t>(k))) slots_ = {};
        }
    }

    const ColumnTexts& texts() const { return texts_; }

    // Returns the text's position, or unknown_category.
    double code(std::string_view wanted) const {
        if (slots_.empty()) return texts_.code(wanted);
        const std::uint64_t hash = hash_of(wanted);
        for (std::size_t probe = 0; probe < most_probes; ++probe) {
            const Slot& slot = slots_[place(hash, probe)];
            if (slot.position == empty) break;
            if (slot.tag == tag_of(hash) && texts_.text(slot.position) == wanted)
                return static_cast<double>(slot.position);
        }
        return unknown_category;
    }

  private:
    struct Slot {
        std::uint32_t tag, position;
    };
    static constexpr std::uint32_t empty = ~std::uint32_t{0};
    static constexpr std::size_t least_texts = 32, most_probes = 64;

    static std::uint32_t tag_of(std::uint64_t hash) { return static_cast<std::uint32_t>(hash >> 32); }
    std::size_t place(std::uint64_t hash, std::size_t probe) const {
        return (static_cast<std::size_t>(hash) + probe) & (slots_.size() - 1);
    }

    bool insert(std::uint64_t hash, std::uint32_t position) {
        for (std::size_t probe = 0; probe < most_probes; ++probe) {
            Slot& slot = slots_[place(hash, probe)];
            if (slot.position != empty) continue;
            slot = {tag_of(hash), position};
            return true;
        }
        return false;
    }

    // Takes eight bytes at a time, with MurmurHash3's finalizer.
    static std::uint64_t hash_of(std::string_view text) {
        std::uint64_t hash = text.size() * 0x9E3779B97F4A7C15u;
        for (std::size_t at = 0; at < text.size(); at += 8) {
            std::uint64_t word = 0;
            std::memcpy(&word, text.data() + at, text.size() - at < 8 ? text.size() - at : 8);
            hash = mixed(hash ^ word);
        }
        return hash;
    }

    static std::uint64_t mixed(std::uint64_t x) {
        x = (x ^ (x >> 33)) * 0xFF51AFD7ED558CCDu;
        x = (x ^ (x >> 33)) * 0xC4CEB9FE1A85EC53u;
        return x ^ (x >> 33);
    }

    ColumnTexts texts_;
    std::vector<Slot> slots_;  // a power of two, half of them empty; none if texts are searched
};

}  // namespace approxsvm::python
