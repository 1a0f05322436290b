// Finds a string's code with one hash lookup; a binary search in the artifact takes a dozen steps.
#pragma once

#include <approxsvm/approxsvm.hpp>
#include <string_view>
#include <unordered_map>

namespace approxsvm::python {

// A column's strings, which are stored in the artifact. Columns with few strings have no hash table, because a binary
// search is faster.
class CategoryIndex {
  public:
    explicit CategoryIndex(const ColumnTexts& texts) : texts_(texts) {
        constexpr std::size_t least_texts = 32;
        for (std::size_t k = 0; texts.n >= least_texts && k < texts.n; ++k)
            codes_.emplace(texts.text(k), static_cast<double>(k));
    }

    const ColumnTexts& texts() const { return texts_; }

    // Returns the string's index, or unknown_category.
    double code(std::string_view wanted) const {
        if (codes_.empty()) return texts_.code(wanted);
        const auto found = codes_.find(wanted);
        return found == codes_.end() ? unknown_category : found->second;
    }

  private:
    ColumnTexts texts_;
    std::unordered_map<std::string_view, double> codes_;
};

}  // namespace approxsvm::python
