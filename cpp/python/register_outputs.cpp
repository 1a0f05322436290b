#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <approxsvm/outputs/outputs.hpp>
#include <optional>
#include <vector>

#include "fault_text.hpp"
#include "module.hpp"

namespace py = pybind11;

namespace approxsvm::python {
namespace {

using Matrix = py::array_t<double, py::array::c_style | py::array::forcecast>;

// Computes outputs from decision values as specified by the section "outputs", row by row, without holding the GIL.
class PyOutputs {
  public:
    PyOutputs(const std::optional<py::bytes>& section, std::uint32_t task, std::uint32_t n_labels)
        : task_(static_cast<Task>(task)), n_classes_(task_ == Task::one_class ? 2 : n_labels) {
        const bool classifies = task_ == Task::classification;
        if (task > 2 || (classifies ? n_labels < 2 : n_labels != 0))
            raise("ArtifactError", "task " + std::to_string(task) + " with " + std::to_string(n_labels) + " labels");
        const std::string_view bytes = section ? std::string_view(*section) : std::string_view();
        bytes_ = aligned(bytes);
        const unsigned char* const data = section ? reinterpret_cast<const unsigned char*>(bytes_.data()) : nullptr;
        const bool is_mean = section && bytes.size() >= sizeof(OutputsHeader) &&
                             read_at<OutputsHeader>(data, 0).probability == number_of(ProbabilityKind::members_mean);
        const CombinationView of_numbers{};  // only ensembles have means
        ArtifactFault fault;
        const Status status =
            read_outputs(data, bytes.size(), {task_, n_labels, is_mean ? &of_numbers : nullptr}, outputs_, &fault);
        if (status != Status::ok) raise("ArtifactError", dispatch::text_of(status, fault));
    }
    PyOutputs(const PyOutputs&) = delete;  // the view points into bytes_
    PyOutputs& operator=(const PyOutputs&) = delete;

    py::array_t<double> probabilities(const Matrix& values) const {
        const std::size_t n_rows = rows_of(values);
        check_probabilities();
        py::array_t<double> found = of_classes(n_rows);
        for_each_row(n_rows, [&, v = values.data(), p = found.mutable_data()](std::size_t row, double* room) {
            probabilities_of(outputs_, n_classes_, v + row * width(), p + row * n_classes_, room);
        });
        return found;
    }

    py::tuple probability_interval(const Matrix& values, const Matrix& bounds) const {
        check_probabilities();
        return interval(values, bounds, [this](const double* v, const double* b, double* lo, double* hi, double* room) {
            approxsvm::probability_interval(outputs_, n_classes_, v, b, lo, hi, room);
        });
    }

    py::array_t<double> one_vs_rest_scores(const Matrix& values) const {
        const std::size_t n_rows = rows_of(values);
        check_classes();
        py::array_t<double> found = of_classes(n_rows);
        for_each_row(n_rows, [&, v = values.data(), s = found.mutable_data()](std::size_t row, double* room) {
            approxsvm_one_vs_rest_scores(static_cast<int>(n_classes_), v + row * width(), s + row * n_classes_, room);
        });
        return found;
    }

    py::tuple one_vs_rest_interval(const Matrix& values, const Matrix& bounds) const {
        check_classes();
        return interval(values, bounds, [this](const double* v, const double* b, double* lo, double* hi, double* room) {
            approxsvm_one_vs_rest_ends(static_cast<int>(n_classes_), v, b, lo, hi, room);
        });
    }

    py::array_t<std::int64_t> predicted_class(const Matrix& values) const {
        const std::size_t n_rows = rows_of(values);
        check_classes();
        py::array_t<std::int64_t> found(static_cast<py::ssize_t>(n_rows));
        for_each_row(n_rows, [&, v = values.data(), f = found.mutable_data()](std::size_t row, double* room) {
            f[row] =
                static_cast<std::int64_t>(approxsvm::predicted_class(outputs_, n_classes_, v + row * width(), room));
        });
        return found;
    }

    py::tuple certified_class(const Matrix& values, const Matrix& bounds) const {
        const std::size_t n_rows = rows_of(values, &bounds);
        check_classes();
        py::array_t<std::int64_t> found(static_cast<py::ssize_t>(n_rows));
        py::array_t<bool> certain(static_cast<py::ssize_t>(n_rows));
        for_each_row(n_rows, [&, v = values.data(), b = bounds.data(), f = found.mutable_data(),
                              c = certain.mutable_data()](std::size_t row, double* room) {
            std::size_t winner = 0;
            c[row] =
                approxsvm::certified_class(outputs_, n_classes_, v + row * width(), b + row * width(), winner, room);
            f[row] = static_cast<std::int64_t>(winner);
        });
        return py::make_tuple(found, certain);
    }

  private:
    // Number of decision values per row.
    std::size_t width() const { return n_values_of(outputs_, n_classes_); }

    std::size_t rows_of(const Matrix& values, const Matrix* bounds = nullptr) const {
        if (values.ndim() != 2 || values.shape(1) != static_cast<py::ssize_t>(width()))
            raise("InputError", "expected decision values of shape (n_rows, " + std::to_string(width()) + ")");
        if (bounds &&
            (bounds->ndim() != 2 || bounds->shape(0) != values.shape(0) || bounds->shape(1) != values.shape(1)))
            raise("InputError", "there is not one bound for each decision value");
        return static_cast<std::size_t>(values.shape(0));
    }
    void check_probabilities() const {
        if (!has_probabilities(outputs_)) raise("InputError", "the model has no probabilities");
    }
    void check_classes() const {
        if (n_classes_ == 0) raise("InputError", "a regression has no classes");
    }

    py::array_t<double> of_classes(std::size_t n_rows) const {
        return py::array_t<double>({static_cast<py::ssize_t>(n_rows), static_cast<py::ssize_t>(n_classes_)});
    }

    template <class Visit>
    void for_each_row(std::size_t n_rows, Visit visit) const {
        py::gil_scoped_release release;
        std::vector<double> room(outputs_doubles(n_classes_));
        for (std::size_t row = 0; row < n_rows; ++row) visit(row, room.data());
    }

    template <class Find>
    py::tuple interval(const Matrix& values, const Matrix& bounds, Find find) const {
        const std::size_t n_rows = rows_of(values, &bounds);
        py::array_t<double> lowest = of_classes(n_rows), highest = of_classes(n_rows);
        for_each_row(n_rows, [&, v = values.data(), b = bounds.data(), lo = lowest.mutable_data(),
                              hi = highest.mutable_data()](std::size_t row, double* room) {
            const std::size_t at = row * width(), to = row * n_classes_;
            find(v + at, b + at, lo + to, hi + to, room);
        });
        return py::make_tuple(lowest, highest);
    }

    const Task task_;
    const std::size_t n_classes_;
    std::vector<std::uint64_t> bytes_;  // the section, at an address that is a multiple of 8
    OutputsView outputs_{};
};

}  // namespace

void register_outputs(py::module_& module) {
    py::class_<PyOutputs>(module, "Outputs")
        .def(py::init<const std::optional<py::bytes>&, std::uint32_t, std::uint32_t>(), py::arg("section"),
             py::arg("task"), py::arg("n_labels"))
        .def("probabilities", &PyOutputs::probabilities, py::arg("values"))
        .def("probability_interval", &PyOutputs::probability_interval, py::arg("values"), py::arg("bounds"))
        .def("one_vs_rest_scores", &PyOutputs::one_vs_rest_scores, py::arg("values"))
        .def("one_vs_rest_interval", &PyOutputs::one_vs_rest_interval, py::arg("values"), py::arg("bounds"))
        .def("predicted_class", &PyOutputs::predicted_class, py::arg("values"))
        .def("certified_class", &PyOutputs::certified_class, py::arg("values"), py::arg("bounds"));
}

}  // namespace approxsvm::python
