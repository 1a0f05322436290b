// Reads the section "categories" in place (models/FORMAT.md): the strings that the codes in raw columns stand for.
#ifndef APPROXSVM_ARTIFACT_SECTIONS_CATEGORIES_HPP
#define APPROXSVM_ARTIFACT_SECTIONS_CATEGORIES_HPP

#include <limits>
#include <string_view>

#include "../texts.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

constexpr double unknown_category = -1.0, none_category = -2.0;

// The strings of one column; none for a numeric column.
struct ColumnTexts {
    const std::uint32_t*
        ends;  // ends of all columns' strings in `bytes`; this column's string k ends at ends[first + k]
    std::size_t first, n;
    const char* bytes;
    double null;

    std::string_view text(std::size_t k) const {
        const std::size_t begin = first + k == 0 ? 0 : ends[first + k - 1];
        return {bytes + begin, ends[first + k] - begin};
    }
    // Returns the index of a string, or unknown_category. Strings are sorted in byte order.
    double code(std::string_view wanted) const {
        std::size_t low = 0, left = n;
        while (left > 0) {
            const std::size_t half = left / 2;
            const bool below = text(low + half) < wanted;
            low = below ? low + half + 1 : low;
            left = below ? left - half - 1 : half;
        }
        return low < n && text(low) == wanted ? static_cast<double>(low) : unknown_category;
    }
};

// Returns the strings of the string column with this index.
APPROXSVM_COLD inline ColumnTexts texts_of_columns(const CategoriesView& view, std::size_t index) {
    ColumnTexts found{view.ends, 0, 0, view.bytes, std::numeric_limits<double>::quiet_NaN()};
    for (std::size_t i = 0; i < index; ++i) found.first += view.columns[i].n_texts;
    found.n = view.columns[index].n_texts;
    if (view.columns[index].null != 0) found.null = none_category;
    return found;
}

APPROXSVM_COLD inline ColumnTexts texts_of(const ModelView& model, std::size_t column) {
    const CategoriesView& view = model.categories;
    for (std::size_t i = 0; i < view.n_columns; ++i) {
        if (view.columns[i].column == column) return texts_of_columns(view, i);
    }
    return {nullptr, 0, 0, nullptr, std::numeric_limits<double>::quiet_NaN()};
}

APPROXSVM_COLD inline bool texts_ascend(Check& check, const CategoriesView& view) {
    for (std::size_t i = 0; i < view.n_columns; ++i) {
        const ColumnTexts texts = texts_of_columns(view, i);
        for (std::size_t k = 1; k < texts.n; ++k) {
            if (!(texts.text(k - 1) < texts.text(k)))
                return check.refuse(field::categories_text, k, Expected{Rule::text_above, stored(k - 1), {}},
                                    texts.first + k);
        }
    }
    return check.status() == Status::ok;
}

// Describes the section, or reports that it is invalid.
APPROXSVM_COLD inline Status read_categories(const SectionTable& sections, ModelView& model, ArtifactFault* fault) {
    const unsigned char* const bytes = sections.at(section::categories);
    const std::size_t n_bytes = sections[section::categories].bytes;
    Check check(fault, section::categories, Status::bad_section);
    if (!bytes) return Status::ok;
    if (!check(field::any_size, n_bytes, at_least(sizeof(CategoriesHeader)))) return check.status();
    const CategoriesHeader header = read_at<CategoriesHeader>(bytes, 0);
    const ClaimedSize columns_end = sizeof(CategoriesHeader) + ClaimedSize{sizeof(CategoryColumn)} * header.n_columns,
                      texts_begin = columns_end + ClaimedSize{4} * header.n_texts;
    check(field::categories_n_columns, header.n_columns, from_to(1, model.n_raw_features));
    if (!check(field::any_size, n_bytes, at_least(texts_begin))) return check.status();
    CategoriesView& view = model.categories;
    view.n_columns = header.n_columns;
    view.columns = reinterpret_cast<const CategoryColumn*>(bytes + sizeof(CategoriesHeader));
    view.ends = reinterpret_cast<const std::uint32_t*>(bytes + columns_end);
    view.bytes = reinterpret_cast<const char*>(bytes + texts_begin);
    ClaimedSize n_texts = 0;
    for (std::size_t i = 0; i < view.n_columns; n_texts += view.columns[i].n_texts, ++i) {
        const std::size_t least = i == 0 ? 0 : std::size_t{view.columns[i - 1].column} + 1;
        check(field::category_column_column, std::size_t{view.columns[i].column},
              from_to(least, model.n_raw_features - 1), i);
        check(field::category_column_null, view.columns[i].null, from_to(0, 1), i);
        check(field::category_column_reserved, view.columns[i].reserved, equal_to(0), i);
    }
    check(field::categories_n_texts, n_texts, equal_to(ClaimedSize{header.n_texts}));
    std::size_t begin = 0;
    const std::size_t n_text_bytes = n_bytes - static_cast<std::size_t>(texts_begin);
    for (std::size_t k = 0; check.status() == Status::ok && k < header.n_texts; begin = view.ends[k], ++k) {
        if (check(field::categories_end, std::size_t{view.ends[k]}, from_to(begin, n_text_bytes), k))
            is_utf8(check, bytes, static_cast<std::size_t>(texts_begin) + begin, view.ends[k] - begin);
    }
    check(field::any_size, n_bytes, equal_to(texts_begin + begin));
    if (check.status() == Status::ok) texts_ascend(check, view);
    return check.status();
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif
