#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <cmath>
#include <limits>

#include "../module.hpp"
#include "ngrams.hpp"

namespace py = pybind11;

namespace approxsvm::python {
namespace {

// Returns a str in UTF-8, with unpaired surrogates encoded as in `Characters`; the result may be stored in `memory`.
std::string_view utf8_of(PyObject* text, std::string& memory) {
    const Characters characters(text);
    memory.clear();
    for (Py_ssize_t i = 0; i < characters.size(); ++i) characters.append(i, memory);
    return memory;
}

// Counts the terms in documents like a fitted vectorizer with these options.
class TermCounter {
  public:
    TermCounter(const NgramOptions& options, const std::vector<py::str>& stop_words, const std::vector<py::str>& terms,
                std::uint32_t n_hashes, bool alternate_sign)
        : options_(options),
          stop_words_(stop_words.size()),
          terms_(terms.size()),
          n_hashes_(n_hashes),
          alternate_sign_(alternate_sign) {
        std::string memory;
        for (const py::str& word : stop_words) stop_words_.add(utf8_of(word.ptr(), memory));
        for (const py::str& term : terms) {
            if (!terms_.add(utf8_of(term.ptr(), memory))) raise("ArtifactError", "terms collide");
        }
    }

    // Takes a document or a list of tokens per row; returns the counts, columns and indptr of CSR rows. A row's columns
    // are in ascending order.
    py::tuple count(const py::list& texts) const {
        Ngrams ngrams(options_, stop_words_);
        std::vector<std::uint32_t> found;  // the column of each occurrence, with the sign in the last bit
        std::vector<std::int32_t> columns, indptr{0};
        std::vector<double> counts;
        const auto take = [&](std::string_view term) {
            if (n_hashes_ > 0) return found.push_back(hashed(term));
            const std::uint32_t column = terms_.find(term);
            if (column != Vocabulary::unknown) found.push_back(column << 1);
        };
        for (const py::handle text : texts) {
            found.clear();
            if (PyUnicode_Check(text.ptr())) {
                ngrams.of_text(Characters(text.ptr()), take);
            } else {
                ngrams.clear();
                for (const py::handle token : py::cast<py::list>(text)) {
                    const Characters word(py::cast<py::str>(token).ptr());
                    ngrams.add_word(word, 0, word.size());
                }
                ngrams.take_all(take, false);
            }
            std::sort(found.begin(), found.end());
            for (std::size_t i = 0; i < found.size();) {
                const std::uint32_t column = found[i] >> 1;
                double sum = 0.0;
                for (; i < found.size() && found[i] >> 1 == column; ++i) sum += found[i] & 1 ? -1.0 : 1.0;
                columns.push_back(static_cast<std::int32_t>(column));
                counts.push_back(sum);
            }
            if (columns.size() > std::numeric_limits<std::int32_t>::max()) {
                raise("InputError", "the texts have more than 2^31 - 1 terms; predict fewer at once");
            }
            indptr.push_back(static_cast<std::int32_t>(columns.size()));
        }
        const auto array = [](const auto& values) {
            return py::array_t<typename std::decay_t<decltype(values)>::value_type>(
                static_cast<py::ssize_t>(values.size()), values.data());
        };
        return py::make_tuple(array(counts), array(columns), array(indptr));
    }

  private:
    // Returns the column that FeatureHasher would choose for a term, shifted left by one, with the sign in the last
    // bit.
    std::uint32_t hashed(std::string_view term) const {
        const std::uint32_t hash = murmur3(term);
        const bool is_negative = hash >> 31;
        const std::uint32_t size = is_negative ? 0u - hash : hash;
        return (size % n_hashes_) << 1 | static_cast<std::uint32_t>(is_negative && alternate_sign_);
    }

    NgramOptions options_;
    Vocabulary stop_words_, terms_;
    std::uint32_t n_hashes_;
    bool alternate_sign_;
};

// Divides each CSR row by its norm in place, with the operations of scikit-learn's `normalize`, in the same order.
template <class T>
void normalize_rows(const py::array_t<std::int32_t>& indptr, py::array_t<T, py::array::c_style>& values, bool squares) {
    const auto starts = indptr.unchecked<1>();
    T* const x = values.mutable_data();
    for (py::ssize_t row = 0; row + 1 < indptr.size(); ++row) {
        double sum = 0.0;
        for (std::int32_t i = starts(row); i < starts(row + 1); ++i) sum += squares ? x[i] * x[i] : std::fabs(x[i]);
        if (sum == 0.0) continue;
        if (squares) sum = std::sqrt(sum);
        for (std::int32_t i = starts(row); i < starts(row + 1); ++i) x[i] = static_cast<T>(x[i] / sum);
    }
}

}  // namespace

void register_ngrams(py::module_& module) {
    py::class_<TermCounter>(module, "TermCounter")
        .def(py::init([](const std::string& analyzer, std::size_t min_n, std::size_t max_n, py::ssize_t min_token_size,
                         const std::vector<py::str>& stop_words, const std::vector<py::str>& terms,
                         std::uint32_t n_hashes, bool alternate_sign) {
                 const Analyzer kind = analyzer == "word"   ? Analyzer::word
                                       : analyzer == "char" ? Analyzer::char_
                                                            : Analyzer::char_wb;
                 const NgramOptions options{kind, min_n, max_n, min_token_size};
                 return TermCounter(options, stop_words, terms, n_hashes, alternate_sign);
             }),
             py::arg("analyzer"), py::arg("min_n"), py::arg("max_n"), py::arg("min_token_size"), py::arg("stop_words"),
             py::arg("terms"), py::arg("n_hashes"), py::arg("alternate_sign"))
        .def("count", &TermCounter::count, py::arg("texts"));
    const auto exactly = [](const char* name) { return py::arg(name).noconvert(); };
    module.def("normalize_rows", normalize_rows<double>, exactly("indptr"), exactly("values"), py::arg("squares"));
    module.def("normalize_rows", normalize_rows<float>, exactly("indptr"), exactly("values"), py::arg("squares"));
}

}  // namespace approxsvm::python
