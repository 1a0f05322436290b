// What approxsvm-predict predicts with: an artifact or a LIBSVM model file, told apart by their first byte.
#pragma once

#include <algorithm>
#include <approxsvm/approxsvm.hpp>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "exact_model.hpp"
#include "libsvm_sums.hpp"
#include "mapped_file.hpp"
#include "predictor.hpp"

namespace approxsvm::tools {

/// "path: why", or "path, line N: why".
inline std::runtime_error text_error(const std::string& path, const text::TextError& error) {
    const std::string line = error.line == 0 ? "" : ", line " + std::to_string(error.line);
    return std::runtime_error(path + line + ": " + error.what());
}

class LoadedModel {
  public:
    /// Throws std::runtime_error, naming the file and, where there is one, the line.
    explicit LoadedModel(const std::string& path) : file_(path) {
        const dispatch::Kernels& kernels = dispatch::selected_target();
        const std::string_view bytes = file_.bytes();
        try {
            if (!bytes.empty() && static_cast<unsigned char>(bytes.front()) == magic[0]) {
                predictor_.emplace(bytes.data(), bytes.size(), kernels);
                if (predictor_->model().has_input_map) throw UnsupportedModel(mapped);
                if (predictor_->model().n_decisions > 1) throw UnsupportedModel(several);
            } else {
                if (bytes.find("svm_type") == std::string_view::npos) throw UnsupportedModel(neither);
                exact_.emplace(text::parse_libsvm_model(bytes));
                if (exact_->has_engine()) predictor_.emplace(exact_->view(), kernels);
            }
        } catch (const text::TextError& error) {
            throw text_error(path, error);
        } catch (const dispatch::ArtifactError& error) {
            throw std::runtime_error(path + ": " + error.what());
        } catch (const UnsupportedModel& error) {
            throw std::runtime_error(path + ": " + error.what());
        }
    }

    const ModelView& view() const { return exact_ ? exact_->view() : predictor_->model(); }
    bool is_artifact() const { return !exact_; }
    /// Null when svm-predict's sums have to be repeated for every row.
    const dispatch::Predictor* predictor() const { return predictor_ ? &*predictor_ : nullptr; }
    /// Null when the model is an artifact.
    const ExactModel* exact() const { return exact_ ? &*exact_ : nullptr; }

  private:
    static constexpr char mapped[] = "the artifact scales or projects its rows first, which only Python does";
    static constexpr char several[] = "artifacts of more than two classes are for Python and the library so far";
    static constexpr char neither[] = "neither an approxsvm artifact nor a LIBSVM model";

    text::MappedFile file_;
    std::optional<ExactModel> exact_;
    std::optional<dispatch::Predictor> predictor_;
};

/// One thread's way from rows to decision values. A row's value depends on that row alone.
class Decider {
  public:
    explicit Decider(const LoadedModel& model) : predictor_(model.predictor()), is_constant_(false) {
        if (predictor_) workspace_.emplace(predictor_->make_workspace());
        if (!model.exact()) return;
        sums_.emplace(*model.exact());
        is_constant_ = model.exact()->libsvm().n_classes == 1;
    }

    void decide(const CsrRows<double, std::int32_t>& rows, std::vector<double>& values) {
        values.assign(rows.n_rows, 1.0);
        if (predictor_) {
            check(sums_ ? decide_labels(rows, values.data()) : evaluate(rows, {values.data(), nullptr, nullptr}));
            return;
        }
        const double* const last = rows.values + rows.row_starts[rows.n_rows];
        check(std::all_of(rows.values, last, [](double x) { return std::isfinite(x); }) ? Status::ok
                                                                                        : Status::not_finite);
        if (is_constant_) return;
        open_.resize(rows.n_rows);
        std::iota(open_.begin(), open_.end(), std::size_t{0});
        sums_->decide(rows, open_, values.data());
    }

  private:
    static void check(Status status) {
        if (status != Status::ok) throw std::runtime_error(message(status));
    }

    /// Where not even float64 can tell the sign of f, svm-predict's own rounding decides, and its sums are repeated.
    Status decide_labels(const CsrRows<double, std::int32_t>& rows, double* values) {
        stages_.resize(rows.n_rows);
        const Status status = evaluate(rows, {values, nullptr, stages_.data()});
        if (status != Status::ok) return status;
        open_.clear();
        for (std::size_t i = 0; i < rows.n_rows; ++i) {
            if (stages_[i] == by_definition) open_.push_back(i);
        }
        sums_->decide(rows, open_, values);
        return Status::ok;
    }

    Status evaluate(const CsrRows<double, std::int32_t>& rows, const Evaluation& out) {
        dispatch::StageCounts counts{};
        constexpr std::size_t many = ~std::size_t{0};  // a chunk is a part of a file, and chunks may differ in size
        return predictor_->kernels().evaluate_csr_f64_i32(predictor_->prepared(), rows, Request{many}, out,
                                                          counts.data(), workspace_->data());
    }

    const dispatch::Predictor* predictor_;
    std::optional<dispatch::Workspace> workspace_;
    std::optional<LibsvmSums> sums_;
    bool is_constant_;
    std::vector<std::uint8_t> stages_;
    std::vector<std::size_t> open_;
};

}  // namespace approxsvm::tools
