#include <pybind11/stl.h>

#include <approxsvm/predict/row_work.hpp>
#include <cstring>

#include "artifact.hpp"
#include "module.hpp"

namespace py = pybind11;

namespace approxsvm::python {
namespace {

constexpr std::align_val_t alignment{64};

// Returns the character that stands for a number's type in Python's struct module.
template <class Number>
constexpr const char* code_of() {
    return std::is_same<Number, std::uint16_t>::value   ? "H"
           : std::is_same<Number, std::uint32_t>::value ? "I"
           : std::is_same<Number, std::uint64_t>::value ? "Q"
           : std::is_same<Number, float>::value         ? "f"
           : std::is_same<Number, double>::value        ? "d"
                                                        : "s";
}

// Returns artifact/schema.inc as dictionaries: limits, sections and enumerations by name, records as lists of (name,
// code, count), layouts as lists of (name, code), and the domain conditions of steps by kind. A layout entry with an
// empty name means padding with zero bytes; its code is then the number of bytes, and the padding extends to a multiple
// of it. Records in layouts consist of float64 values.
py::dict schema() {
    py::dict limits, sections, enumerations, records, layouts, domains;
    py::dict enumeration;
    py::list fields;
#define APPROXSVM_LIMIT(type, name, value) limits[#name] = py::cast(name);
#define APPROXSVM_SECTION(name, identifier, needed, optional) sections[#name] = identifier;
#define APPROXSVM_ENUMERATION(Name, name) enumerations[#name] = enumeration = py::dict();
#define APPROXSVM_ENUMERATOR(name, number) enumeration[#name] = number;
#define APPROXSVM_RECORD(Name, tag) records[#tag] = fields = py::list();
#define APPROXSVM_FIELD(tag, type, name) fields.append(py::make_tuple(#name, code_of<type>(), 1));
#define APPROXSVM_ARRAY(tag, type, name, n) fields.append(py::make_tuple(#name, code_of<type>(), n));
#define APPROXSVM_LAYOUT(tag, part, view) layouts[#tag] = fields = py::list();
#define APPROXSVM_GROUP(tag, Group, Section) layouts[#tag] = fields = py::list();
#define APPROXSVM_NUMBER(tag, type, name, words, rule) fields.append(py::make_tuple(#name, code_of<type>()));
#define APPROXSVM_NUMBERS(tag, type, name, words, count, rule) fields.append(py::make_tuple(#name, code_of<type>()));
#define APPROXSVM_RECORDS(tag, Record, name, count) fields.append(py::make_tuple(#name, "d"));
#define APPROXSVM_ZEROS(tag, multiple) fields.append(py::make_tuple("", multiple));
#define APPROXSVM_DOMAIN(kind, words) domains[#kind] = words;
#include <approxsvm/artifact/schema.inc>
    py::dict all;
    all["limits"] = limits;
    all["sections"] = sections;
    all["enumerations"] = enumerations;
    all["records"] = records;
    all["layouts"] = layouts;
    all["domains"] = domains;
    return all;
}

const char* const names_of_fields[] = {
    "",
#define APPROXSVM_FIELD(tag, type, name) #name,
#define APPROXSVM_ARRAY(tag, type, name, n) #name,
#define APPROXSVM_PART(tag, name, words) #name,
#include <approxsvm/artifact/schema.inc>
};

// Lists the numeric entries of a validated section, each with its name, code, offset in the section, count and range.
// Records have no name.
class Lister : public Walk {
  public:
    Lister(const SectionTable& sections, std::uint32_t wanted) : Walk(sections, nullptr), wanted_(wanted) {
        is_trusted_ = true;
    }
    py::list listed;

    bool begin(section::Id id) {
        id_ = id;
        return Walk::begin(id);
    }
    template <class Number>
    Number number(field::Id field, const Expected& expected) {
        add(names_of_fields[field], code_of<Number>(), 1, expected);
        return Walk::number<Number>(field, expected);
    }
    template <class Number>
    void numbers(field::Id field, const Number*& array, Count count, const Expected& expected) {
        add(names_of_fields[field], code_of<Number>(), count, expected);
        Walk::numbers<Number>(field, array, count, expected);
    }
    template <class Record>
    void records(const Record*& array, Count count) {
        add("", "d", count * (sizeof(Record) / sizeof(double)), {Rule::not_nan, {}, {}});
        Walk::records<Record>(array, count);
    }

  private:
    void add(const char* name, const char* code, Count count, const Expected& expected) {
        if (id_ != wanted_) return;
        const double low = expected.low.real(), high = expected.high.real(), most = largest_double;
        const bool has_low = expected.rule != Rule::finite && expected.rule != Rule::zero_or_modulus;
        const bool has_high = high > low || expected.rule == Rule::equal || expected.rule == Rule::from_to;
        listed.append(py::make_tuple(name, code, position(), count.n(),
                                     has_low    ? low
                                     : has_high ? -high
                                                : -most,
                                     has_high ? high : most));
    }

    std::uint32_t wanted_;
    section::Id id_ = section::none;
};

py::list list_numbers(const PyArtifact& artifact, std::uint32_t section) {
    ModelView model = artifact.model();
    SectionTable sections{};
    read_sections(artifact.data(), artifact.size(), sections, nullptr);
    Lister lister(sections, section);
    Layouts(model, sections).read<all_parts>(lister, model);
    return lister.listed;
}

// Returns the names of an artifact's parts, as used in C++ programs.
py::list names_of(Parts parts) {
    py::list names;
#define APPROXSVM_MODEL_PART(name, bit, words) \
    if (has(parts, name)) names.append(#name);
#include <approxsvm/parts.inc>
    return names;
}

}  // namespace

void PyArtifact::Release::operator()(unsigned char* bytes) const {
    ::operator delete(bytes, alignment);
}

PyArtifact::PyArtifact(const py::object& source) {
    if (PyObject_GetBuffer(source.ptr(), &buffer_, PyBUF_SIMPLE) != 0) throw py::error_already_set();
    data_ = static_cast<const unsigned char*>(buffer_.buf);
    size_ = static_cast<std::size_t>(buffer_.len);
    const bool is_aligned = reinterpret_cast<std::uintptr_t>(data_) % static_cast<std::size_t>(alignment) == 0;
    try {
        py::gil_scoped_release release;
        if (!is_aligned || buffer_.readonly == 0) {
            copy_.reset(static_cast<unsigned char*>(::operator new(size_ + 1, alignment)));
            if (size_ > 0) std::memcpy(copy_.get(), data_, size_);
            data_ = copy_.get();
        }
        opened_.emplace(data_, size_);
    } catch (const dispatch::ArtifactError& error) {
        PyBuffer_Release(&buffer_);
        raise("ArtifactError", error.what());
    } catch (...) {
        PyBuffer_Release(&buffer_);
        throw;
    }
    if (copy_) PyBuffer_Release(&buffer_);
}

PyArtifact::~PyArtifact() {
    PyBuffer_Release(&buffer_);  // a second call does nothing
}

// Returns the values of RowWork, or None.
py::object row_work(const PyArtifact& artifact) {
    RowWork work;
    if (!work_of_row(artifact.model(), work)) return py::none();
    return py::make_tuple(work.all_stages, work.with_definition);
}

void register_artifact(py::module_& module) {
    module.def("schema", schema, "Limits, sections, records and layouts of models/FORMAT.md.");
    py::class_<PyArtifact, std::shared_ptr<PyArtifact>>(module, "Artifact", py::buffer_protocol())
        .def(py::init<const py::object&>(), py::arg("source"))
        .def_buffer([](const PyArtifact& artifact) {
            return py::buffer_info(const_cast<unsigned char*>(artifact.data()), 1,
                                   py::format_descriptor<unsigned char>::format(), 1,
                                   {static_cast<py::ssize_t>(artifact.size())}, {1}, true);
        })
        .def_property_readonly("n_terms", &PyArtifact::n_terms)
        .def_property_readonly("row_work", row_work)
        .def("list_numbers", list_numbers, py::arg("section"))
        .def_property_readonly("parts", [](const PyArtifact& artifact) { return names_of(artifact.parts()); });
}

}  // namespace approxsvm::python
