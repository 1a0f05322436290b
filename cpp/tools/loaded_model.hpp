// What approxsvm-predict predicts with: an artifact or a LIBSVM model file, told apart by their first byte.
#pragma once

#include <approxsvm/approxsvm.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "exact_model.hpp"
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
    LoadedModel(const std::string& path, bool wants_probabilities)
        : kernels_(dispatch::selected_target()), file_(path) {
        const std::string_view bytes = file_.bytes();
        try {
            if (!bytes.empty() && static_cast<unsigned char>(bytes.front()) == (magic_number & 0xFF)) {
                open_artifact(bytes, wants_probabilities);
            } else {
                open_libsvm(bytes, wants_probabilities);
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
    const dispatch::TargetTable& kernels() const { return kernels_; }
    /// Null when svm-predict's sums have to be repeated for every row.
    const dispatch::Predictor* predictor() const { return predictor_ ? &*predictor_ : nullptr; }
    /// Null when the model is an artifact.
    const ExactModel* exact() const { return exact_ ? &*exact_ : nullptr; }
    /// The labels of a classifier, +1 and -1 otherwise.
    std::size_t n_answers() const { return view().task == Task::classification ? view().n_labels : 2; }
    bool has_probabilities() const { return has_probabilities_; }
    /// Of a regression: how far targets are from its values, where the model says so; else null.
    const double* sigma() const { return sigma_; }
    /// Whether rows get probabilities beside their labels; a regression model has one number for all of them.
    bool gives_probabilities() const { return with_probabilities_ && view().task != Task::regression; }

  private:
    void open_artifact(std::string_view bytes, bool wants_probabilities) {
        predictor_.emplace(bytes.data(), bytes.size(), kernels_);
        sigma_ = view().outputs.sigma;
        has_probabilities_ = predictor_->n_probabilities() > 0 || sigma_;
        if (wants_probabilities && !has_probabilities_) throw UnsupportedModel(no_probabilities);
        with_probabilities_ = wants_probabilities;
    }

    void open_libsvm(std::string_view bytes, bool wants_probabilities) {
        if (bytes.find("svm_type") == std::string_view::npos) throw UnsupportedModel(neither);
        exact_.emplace(text::parse_libsvm_model(bytes));
        has_probabilities_ = exact_->libsvm().has_probabilities;
        if (wants_probabilities && !has_probabilities_) throw UnsupportedModel(no_probabilities);
        if (has_probabilities_ && view().task == Task::regression) sigma_ = exact_->libsvm().prob_a.data();
        with_probabilities_ = wants_probabilities;
        if (exact_->has_engine() && !wants_probabilities) predictor_.emplace(exact_->view(), kernels_);
    }

    static constexpr char no_probabilities[] = "Model does not support probabiliy estimates";  // spelled as LIBSVM does
    static constexpr char neither[] = "neither an approxsvm artifact nor a LIBSVM model";

    const dispatch::TargetTable& kernels_;
    text::MappedFile file_;
    std::optional<ExactModel> exact_;
    std::optional<dispatch::Predictor> predictor_;
    bool has_probabilities_ = false, with_probabilities_ = false;
    const double* sigma_ = nullptr;
};

}  // namespace approxsvm::tools
