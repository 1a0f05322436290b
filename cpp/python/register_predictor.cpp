#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <approxsvm/approxsvm.hpp>
#include <approxsvm/row_fault.hpp>
#include <cmath>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <vector>

#include "../dispatch/predictor.hpp"
#include "artifact.hpp"
#include "module.hpp"
#include "row_reader.hpp"

namespace py = pybind11;

namespace approxsvm::python {
namespace {

using dispatch::TargetTable;

class PyPredictor {
  public:
    // `float32_unit` is the unit roundoff with which the source maps float32 rows: 2^-24, or 0 if it maps them in
    // float64.
    PyPredictor(std::shared_ptr<PyArtifact> artifact, const std::optional<std::string>& target, double float32_unit)
        : artifact_(std::move(artifact)),
          predictor_(prepared_for(target_for(target))),
          workspace_(predictor_->make_workspace()),
          float32_unit_(float32_unit) {
        if (float32_unit != 0.0 && float32_unit != unit32)
            raise("InputError", "float32_unit is " + std::to_string(float32_unit) + ", expected 0 or 2**-24");
    }

    // Numbers of rows answered by each stage since the predictor was created, and the number of those rows whose
    // evaluation began with the float64 engine.
    dispatch::StageCounts counts() const { return counts_; }
    std::uint64_t exact_count() const { return exact_count_; }

    double few_values_work() const { return predictor_->kernels().few_values_work(predictor_->prepared()); }

    std::string target() const { return predictor_->kernels().name; }

    // Returns the outputs in `want`, a sum of bits of Want, as an array or as a tuple of arrays in bit order. The
    // argument `values` names an enumerator of Values. If `as_part` is true, results are computed as if the rows were
    // part of a large batch.
    py::object dense(const py::array& rows, int n_threads, int want, const std::string& values, bool as_part) {
        if (rows.ndim() != 2)
            raise("InputError", "expected a 2-d array, got " + std::to_string(rows.ndim()) + " dimension(s)");
        const Wanted wanted{want, values_named(values), as_part};
        check_n_features(rows.shape(1));
        const Reals reals = reals_of(rows);
        if (reals == Reals::float32) return dense_of<float>(rows, n_threads, wanted);
        if (reals == Reals::float64) return dense_of<double>(rows, n_threads, wanted);
        raise("InputError", "rows must be float32 or float64");
    }

    py::object csr(const py::array& row_starts, const py::array& columns, const py::array& data, int n_threads,
                   int want, const std::string& values, bool as_part) {
        const Wanted wanted{want, values_named(values), as_part};
        const bool is_float = py::isinstance<py::array_t<float>>(data);
        if (!is_float && !py::isinstance<py::array_t<double>>(data))
            raise("InputError", "values must be float32 or float64");
        if (py::isinstance<py::array_t<std::int32_t>>(columns) &&
            py::isinstance<py::array_t<std::int32_t>>(row_starts)) {
            return is_float ? csr_of<float, std::int32_t>(row_starts, columns, data, n_threads, wanted)
                            : csr_of<double, std::int32_t>(row_starts, columns, data, n_threads, wanted);
        }
        if (py::isinstance<py::array_t<std::int64_t>>(columns) &&
            py::isinstance<py::array_t<std::int64_t>>(row_starts)) {
            return is_float ? csr_of<float, std::int64_t>(row_starts, columns, data, n_threads, wanted)
                            : csr_of<double, std::int64_t>(row_starts, columns, data, n_threads, wanted);
        }
        raise("InputError", "indptr and indices must both be int32 or both be int64");
    }

    // Predicts one C-contiguous row; this is the documented fast path. The GIL is held, so only one call at a time uses
    // the workspace. Returns the label's index, or a regressor's value. Returns None if the row has another layout or
    // dtype; Python code then converts the row.
    py::object one(const py::object& object) {
        if (!py::isinstance<py::array>(object)) {
            raise("InputError", "expected a NumPy array; predict takes lists and data frames");
        }
        const py::array row = py::reinterpret_borrow<py::array>(object);
        const py::ssize_t n = row.ndim() == 1 ? row.shape(0) : row.ndim() == 2 && row.shape(0) == 1 ? row.shape(1) : -1;
        if (n < 0) raise("InputError", "expected one row: an array of shape (n_features,) or (1, n_features)");
        check_n_features(n);
        constexpr int needed = py::array::c_style | py::detail::npy_api::NPY_ARRAY_ALIGNED_;
        const Reals reals = reals_of(row);
        if ((row.flags() & needed) != needed || reals == Reals::neither) return py::none();
        Fault fault{};
        double value = 0.0;
        const Status status =
            reals == Reals::float32
                ? predictor_->decide_one(static_cast<const float*>(row.data()), value, workspace_, &fault, &counts_,
                                         float32_unit_)
                : predictor_->decide_one(static_cast<const double*>(row.data()), value, workspace_, &fault, &counts_);
        if (status == Status::not_finite) raise("InputError", "Input X contains NaN or infinity.");
        raise_if_at_fault(status, fault);
        return answer_of(value);
    }

    // Predicts one row given as a dict, list or tuple. Returns None if the row is faulty or must be read by Python
    // code.
    py::object one_of(const RowReader& reader, const py::object& row) {
        check_n_features(static_cast<py::ssize_t>(reader.n_columns()));
        std::vector<double> numbers(reader.n_columns());  // local, because hashing dict keys may run other threads
        double value = 0.0;
        Fault fault{};
        if (!reader.read(row.ptr(), numbers.data()) ||
            predictor_->decide_one(numbers.data(), value, workspace_, &fault, &counts_) != Status::ok)
            return py::none();
        return answer_of(value);
    }

  private:
    py::object answer_of(double value) const {
        if (predictor_->model().task == Task::regression) return py::float_(value);
        return py::int_(static_cast<py::ssize_t>(value));
    }

    // Element type of an array. Testing for py::array_t would take several times as long.
    enum class Reals { float32, float64, neither };
    static Reals reals_of(const py::array& array) {
        const py::dtype type = array.dtype();
        // NumPy denotes the native byte order by '=', or by '<' after `newbyteorder`; artifacts require it to be
        // little-endian.
        if (type.byteorder() == '>') return Reals::neither;
        return type.num() == py::detail::npy_api::NPY_FLOAT_    ? Reals::float32
               : type.num() == py::detail::npy_api::NPY_DOUBLE_ ? Reals::float64
                                                                : Reals::neither;
    }

    struct Wanted {
        int what;  // bits of Want, in the order of for_outputs
        Values values;
        bool as_part;
    };

    static Values values_named(const std::string& name) {
        if (name == "promised") return Values::promised;
        if (name == "settled") return Values::settled;
        if (name == "exact") return Values::exact;
        raise("InputError", "values must be promised, settled or exact, not " + name);
    }

    // Raises the exception for an invalid row or request.
    static void raise_if_at_fault(Status status, const Fault& fault) {
        const std::string row = "row " + std::to_string(fault.row) + ": ";
        switch (status) {
            case Status::ok:
            case Status::not_finite:        // the caller finds the value
            case Status::unsorted_indices:  // the caller raises another exception
                return;
            case Status::map_overflow:
            case Status::outside_domain:
            case Status::beyond_tolerance: {
                char room[fault_text_bytes];
                raise("InputError", row + text_of_fault(status, fault, room));
            }
            case Status::beyond_float64:
                raise("InputError", "the decision value of row " + std::to_string(fault.row) +
                                        " of X, or a term of it, exceeds the range of float64");
            default:
                raise("InputError", message(status));
        }
    }

    std::unique_ptr<dispatch::Predictor> prepared_for(const TargetTable& kernels) const {
        try {
            py::gil_scoped_release release;  // preparing a large model takes time
            return std::make_unique<dispatch::Predictor>(artifact_->opened(), kernels);
        } catch (const dispatch::ArtifactError& error) {
            raise("ArtifactError", error.what());
        }
    }

    void check_n_features(py::ssize_t n) const {
        const py::ssize_t expected = static_cast<py::ssize_t>(predictor_->model().n_raw_features);
        if (n != expected) {
            raise("InputError", "X has " + std::to_string(n) + " features, but the model expects " +
                                    std::to_string(expected) + " features as input");
        }
    }

    // Arrays for the results of n rows, in the bit order of `want`.
    struct Results {
        const Wanted wanted;
        Evaluation out;
        std::vector<py::object> arrays;

        Results(std::size_t n_rows, const dispatch::Predictor& predictor, Wanted wanted_) : wanted(wanted_) {
            static_assert(sizeof(bool) == 1, "NumPy's bool is a byte");
            int bit = 1;
            for_outputs(predictor.model(), [&](auto output, std::size_t per_row, std::string_view name) {
                if ((wanted.what & bit) != 0) {
                    using Stored = std::remove_reference_t<decltype(*(out.*output).data)>;
                    std::vector<std::size_t> shape{n_rows};
                    if (per_row != 1) shape.push_back(per_row);
                    py::array array(name == "certified" ? py::dtype::of<bool>() : py::dtype::of<Stored>(), shape);
                    out.*output = {static_cast<Stored*>(array.mutable_data()), static_cast<std::size_t>(array.size())};
                    arrays.push_back(std::move(array));
                }
                bit *= 2;
            });
        }

        py::object to_python() const {
            if (arrays.size() == 1) return arrays[0];
            py::tuple all(arrays.size());
            for (std::size_t k = 0; k < arrays.size(); ++k) all[k] = arrays[k];
            return all;
        }
    };

    template <class Rows>
    Status run(const Rows& rows, Results& results, int n_threads) {
        Evaluation out = results.out;
        dispatch::StageCounts counts{};
        Fault fault{};
        Request request;
        if (results.wanted.as_part) request.n_rows_in_call = ~std::size_t{0};
        request.values = results.wanted.values;
        request.fault = &fault;
        if (std::is_same_v<std::remove_const_t<std::remove_pointer_t<decltype(rows.values)>>, float>)
            request.source_unit = float32_unit_;
        Status status;
        {
            py::gil_scoped_release release;
            status = predictor_->evaluate(rows, out, counts, n_threads, request);
        }
        raise_if_at_fault(status, fault);
        if (status == Status::ok) {
            for (std::size_t k = 0; k < counts.size(); ++k) counts_[k] += counts[k];
            if (predictor_->gives_exact_values(request, out)) exact_count_ += rows.n_rows;
        }
        return status;
    }

    template <class Real>
    py::object dense_of(const py::array& rows, int n_threads, Wanted wanted) {
        const py::ssize_t size = static_cast<py::ssize_t>(sizeof(Real));
        if (rows.strides(0) % size != 0 || rows.strides(1) % size != 0) {
            raise("InputError", "row strides must be multiples of the element size");
        }
        const DenseRows<Real> view{static_cast<const Real*>(rows.data()), static_cast<std::size_t>(rows.shape(0)),
                                   rows.strides(0) / size, rows.strides(1) / size};
        Results results(view.n_rows, *predictor_, wanted);
        if (run(view, results, n_threads) == Status::not_finite) raise_not_finite(view);
        return results.to_python();
    }

    template <class Real, class Index>
    py::object csr_of(const py::array& row_starts, const py::array& columns, const py::array& values, int n_threads,
                      Wanted wanted) {
        const auto starts = py::array_t<Index, py::array::c_style>::ensure(row_starts);
        const auto cols = py::array_t<Index, py::array::c_style>::ensure(columns);
        const auto data = py::array_t<Real, py::array::c_style>::ensure(values);
        if (starts.ndim() != 1 || starts.size() < 1 || cols.size() != data.size())
            raise("InputError", "not a CSR matrix");
        const py::ssize_t n_rows = starts.size() - 1;
        const Index* s = starts.data();
        for (py::ssize_t i = 0; i < n_rows; ++i) {
            if (s[i] < 0 || s[i + 1] < s[i] || s[i + 1] > data.size()) {
                raise("InputError", "indptr of the CSR matrix is broken at row " + std::to_string(i));
            }
        }
        const CsrRows<Real, Index> view{data.data(), cols.data(), s, static_cast<std::size_t>(n_rows)};
        Results results(view.n_rows, *predictor_, wanted);
        const Status status = run(view, results, n_threads);
        if (status == Status::unsorted_indices) raise("UnsortedIndicesError", message(status));
        if (status == Status::not_finite) raise_not_finite(view);
        return results.to_python();
    }

    // The message has scikit-learn's wording, followed by the location of the value.
    template <class Rows>
    [[noreturn]] void raise_not_finite(const Rows& rows) const {
        const ModelView& model = predictor_->model();
        BadNumber bad{};
        with_source(rows, model, [&](const RowSource& source) {
            bad = first_bad_number(model, source);
            return Status::ok;
        });
        const std::string row = " (row " + std::to_string(bad.row);
        if (bad.column == model.n_raw_features) raise("InputError", "Input X contains NaN or infinity." + row + ")");
        const char* const what = std::isnan(bad.value) ? "Input X contains NaN." : "Input X contains infinity.";
        raise("InputError", what + row + ", column " + std::to_string(bad.column) + ")");
    }

    std::shared_ptr<PyArtifact> artifact_;
    std::unique_ptr<dispatch::Predictor> predictor_;
    dispatch::Workspace workspace_;
    const double float32_unit_;
    dispatch::StageCounts counts_{};  // guarded by the GIL
    std::uint64_t exact_count_ = 0;
};

py::list target_names() {
    py::list names;
    for (const TargetTable* kernels : dispatch::runnable_targets()) names.append(kernels->name);
    return names;
}

}  // namespace

void register_predictor(py::module_& module) {
    module.def("runnable_targets", target_names, "Names of the targets that this machine can run, fastest first.");
    py::class_<PyPredictor>(module, "Predictor")
        .def(py::init<std::shared_ptr<PyArtifact>, const std::optional<std::string>&, double>(),
             py::arg("artifact").none(false), py::arg("target") = py::none(), py::kw_only(),
             py::arg("float32_unit") = 0.0)
        .def(py::init([](const py::bytes& artifact, const std::optional<std::string>& target, double float32_unit) {
                 return std::make_unique<PyPredictor>(std::make_shared<PyArtifact>(artifact), target, float32_unit);
             }),
             py::arg("artifact"), py::arg("target") = py::none(), py::kw_only(), py::arg("float32_unit") = 0.0)
        .def_property_readonly("target", &PyPredictor::target)
        .def_property_readonly("counts", &PyPredictor::counts)
        .def_property_readonly("exact_count", &PyPredictor::exact_count)
        .def_property_readonly("few_values_work", &PyPredictor::few_values_work)
        .def("dense", &PyPredictor::dense, py::arg("rows"), py::arg("n_threads"), py::arg("want") = 2,
             py::arg("values") = "promised", py::arg("as_part") = false)
        .def("csr", &PyPredictor::csr, py::arg("indptr"), py::arg("indices"), py::arg("data"), py::arg("n_threads"),
             py::arg("want") = 2, py::arg("values") = "promised", py::arg("as_part") = false)
        .def("one", &PyPredictor::one, py::arg("row"))
        .def("one_of", &PyPredictor::one_of, py::arg("reader"), py::arg("row"));
}

}  // namespace approxsvm::python
