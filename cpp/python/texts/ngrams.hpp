// Counts the words, characters or n-grams in documents, like scikit-learn's vectorizers (approxsvm/frames/ngrams.py).
// Decoding, conversion to lower case and stripping of accents are done by Python code beforehand.
#pragma once

#include <Python.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace approxsvm::python {

// MurmurHash3_x86_32 (Austin Appleby, public domain) with seed 0, as used by HashingVectorizer.
inline std::uint32_t murmur3(std::string_view key) {
    const auto rotated = [](std::uint32_t x, int by) { return (x << by) | (x >> (32 - by)); };
    const auto mixed = [&](std::uint32_t k) { return rotated(k * 0xcc9e2d51u, 15) * 0x1b873593u; };
    std::uint32_t h = 0;
    std::size_t i = 0;
    for (; i + 4 <= key.size(); i += 4) {
        std::uint32_t block;
        std::memcpy(&block, key.data() + i, 4);
        h = rotated(h ^ mixed(block), 13) * 5 + 0xe6546b64u;
    }
    std::uint32_t tail = 0;
    for (std::size_t j = key.size(); j-- > i;) tail = tail << 8 | static_cast<unsigned char>(key[j]);
    if (i < key.size()) h ^= mixed(tail);
    h ^= static_cast<std::uint32_t>(key.size());
    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    return h ^ h >> 16;
}

// A hash table of terms and their indices, with open addressing.
class Vocabulary {
  public:
    static constexpr std::uint32_t unknown = 0xffffffffu;

    explicit Vocabulary(std::size_t n_terms) {
        std::size_t n_slots = 8;
        while (n_slots < 2 * n_terms) n_slots *= 2;
        slots_.resize(n_slots);
        ends_.push_back(0);
    }

    // Adds a term; returns false if the term is a duplicate, or if more terms collide than chance can explain.
    bool add(std::string_view term) {
        const std::uint32_t hash = murmur3(term);
        std::size_t slot = hash & (slots_.size() - 1);
        for (int probes = 0; slots_[slot].position != unknown; slot = (slot + 1) & (slots_.size() - 1)) {
            if (holds(slots_[slot], hash, term) || ++probes > 1000) return false;
        }
        slots_[slot] = {hash, static_cast<std::uint32_t>(ends_.size() - 1)};
        bytes_.append(term);
        ends_.push_back(bytes_.size());
        return true;
    }

    std::uint32_t find(std::string_view term) const {
        const std::uint32_t hash = murmur3(term);
        std::size_t slot = hash & (slots_.size() - 1);
        while (slots_[slot].position != unknown && !holds(slots_[slot], hash, term)) {
            slot = (slot + 1) & (slots_.size() - 1);
        }
        return slots_[slot].position;
    }

    bool is_empty() const { return ends_.size() == 1; }

  private:
    struct Slot {
        std::uint32_t hash = 0, position = unknown;
    };

    bool holds(const Slot& slot, std::uint32_t hash, std::string_view term) const {
        if (slot.hash != hash) return false;
        const std::size_t begin = ends_[slot.position];
        return std::string_view(bytes_).substr(begin, ends_[slot.position + 1] - begin) == term;
    }

    std::vector<Slot> slots_;
    std::string bytes_;
    std::vector<std::size_t> ends_;  // the end of each term in bytes_, after a leading 0
};

// Characters of a str, classified with Python's own tables, as in Python's `re` module.
class Characters {
  public:
    explicit Characters(PyObject* text)
        : kind_(PyUnicode_KIND(text)), data_(PyUnicode_DATA(text)), size_(PyUnicode_GET_LENGTH(text)) {}

    Py_ssize_t size() const { return size_; }
    Py_UCS4 operator[](Py_ssize_t i) const { return PyUnicode_READ(kind_, data_, i); }

    bool is_word(Py_ssize_t i) const {  // characters that \w matches
        const Py_UCS4 c = (*this)[i];
        if (c >= 128) return Py_UNICODE_ISALNUM(c) != 0;
        return (c | 32) - 'a' < 26 || c - '0' < 10 || c == '_';
    }
    bool is_space(Py_ssize_t i) const { return Py_UNICODE_ISSPACE((*this)[i]) != 0; }  // \s, also for str.split()

    // Appends a character in UTF-8; an unpaired surrogate takes three bytes, like other characters in its range.
    void append(Py_ssize_t i, std::string& bytes) const {
        const Py_UCS4 c = (*this)[i];
        const auto put = [&](Py_UCS4 byte) { bytes.push_back(static_cast<char>(byte)); };
        if (c < 0x80) return put(c);
        if (c < 0x800) {
            put(0xc0 | c >> 6);
        } else {
            if (c < 0x10000) {
                put(0xe0 | c >> 12);
            } else {
                put(0xf0 | c >> 18);
                put(0x80 | (c >> 12 & 0x3f));
            }
            put(0x80 | (c >> 6 & 0x3f));
        }
        put(0x80 | (c & 0x3f));
    }

  private:
    int kind_;
    const void* data_;
    Py_ssize_t size_;
};

enum class Analyzer { word, char_, char_wb };

struct NgramOptions {
    Analyzer analyzer;
    std::size_t min_n, max_n;
    Py_ssize_t min_token_size;  // minimum length of a word (a run of \w)
};

// The n-grams of a document: consecutive words separated by one space, or consecutive characters, in UTF-8.
class Ngrams {
  public:
    Ngrams(const NgramOptions& options, const Vocabulary& stop_words) : options_(options), stop_words_(stop_words) {}

    // Calls `take` with each n-gram.
    template <class Take>
    void of_text(const Characters& text, const Take& take) {
        clear();
        if (options_.analyzer == Analyzer::word) {
            for (Py_ssize_t i = 0, end; i < text.size(); i = end + 1) {
                for (end = i; end < text.size() && text.is_word(end);) ++end;
                if (end - i >= options_.min_token_size) add_word(text, i, end);
            }
            take_all(take, false);
        } else if (options_.analyzer == Analyzer::char_) {
            for (Py_ssize_t i = 0, end; i < text.size(); i = end) {
                for (end = i; end < text.size() && text.is_space(end);) ++end;
                if (end > i + 1) {  // white space is collapsed to one space
                    add_space();
                } else {
                    add_character(text, i);
                    end = i + 1;
                }
            }
            take_all(take, false);
        } else {
            for (Py_ssize_t i = 0; i < text.size();) {
                for (; i < text.size() && text.is_space(i);) ++i;
                if (i == text.size()) break;
                clear();
                add_space();
                for (; i < text.size() && !text.is_space(i); ++i) add_character(text, i);
                add_space();
                take_all(take, true);
            }
        }
    }

    void clear() {
        bytes_.clear();
        starts_.clear();
    }

    void add_word(const Characters& text, Py_ssize_t begin, Py_ssize_t end) {
        const std::size_t start = bytes_.size();
        for (Py_ssize_t i = begin; i < end; ++i) text.append(i, bytes_);
        if (stop_words_.find(std::string_view(bytes_).substr(start)) != Vocabulary::unknown) {
            bytes_.resize(start);
            return;
        }
        starts_.push_back(start);
        bytes_.push_back(' ');
    }

    // With `whole_once`, if there are at most n units, all of them together form one n-gram, which is the last one.
    template <class Take>
    void take_all(const Take& take, bool whole_once) {
        const std::size_t n_units = starts_.size(), gap = options_.analyzer == Analyzer::word ? 1 : 0;
        const std::string_view bytes(bytes_);
        starts_.push_back(bytes.size());
        for (std::size_t n = options_.min_n; n <= options_.max_n; ++n) {
            if (n >= n_units && whole_once) return take(bytes);
            if (n > n_units) return;
            for (std::size_t i = 0; i + n <= n_units; ++i) {
                take(bytes.substr(starts_[i], starts_[i + n] - gap - starts_[i]));
            }
        }
    }

  private:
    void add_space() {
        starts_.push_back(bytes_.size());
        bytes_.push_back(' ');
    }
    void add_character(const Characters& text, Py_ssize_t i) {
        starts_.push_back(bytes_.size());
        text.append(i, bytes_);
    }

    const NgramOptions options_;
    const Vocabulary& stop_words_;
    std::string bytes_;
    std::vector<std::size_t> starts_;  // the start of each unit, and the end of the last one
};

}  // namespace approxsvm::python
