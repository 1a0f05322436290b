// The model for approxsvm-predict: an artifact or a LIBSVM model file, distinguished by its first bytes.
#pragma once

#include <approxsvm/approxsvm.hpp>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "exact/exact_model.hpp"
#include "file_kind.hpp"
#include "mapped_file.hpp"
#include "predictor.hpp"

namespace approxsvm::tools {

/// Returns an error with the message "path: why" or "path, line N: why".
inline std::runtime_error text_error(const std::string& path, const text::TextError& error) {
    const std::string line = error.line == 0 ? "" : ", line " + std::to_string(error.line);
    return std::runtime_error(path + line + ": " + error.what());
}

class LoadedModel {
  public:
    /// Loads the model. Throws std::runtime_error, whose message contains the file and, if the fault is on one line,
    /// its number.
    LoadedModel(const std::string& path, bool wants_probabilities)
        : kernels_(dispatch::selected_target()), file_(path) {
        const std::string_view bytes = file_.bytes();
        try {
            if (bytes.substr(0, 2) == artifact_begins) {
                open_artifact(bytes, wants_probabilities);
            } else {
                open_libsvm(bytes, wants_probabilities);
            }
        } catch (const text::TextError& error) {
            throw text_error(path, text::explained(error, bytes, text::libsvm_model));
        } catch (const dispatch::ArtifactError& error) {
            throw std::runtime_error(path + ": " + error.what());
        } catch (const UnsupportedModel& error) {
            throw std::runtime_error(path + ": " + error.what());
        }
    }

    const ModelView& view() const { return exact_ ? exact_->view() : predictor_->model(); }
    const dispatch::TargetTable& kernels() const { return kernels_; }
    /// Returns null if svm-predict's sums are needed for every row.
    const dispatch::Predictor* predictor() const { return predictor_ ? &*predictor_ : nullptr; }
    /// Returns null if the model is an artifact.
    const ExactModel* exact() const { return exact_ ? &*exact_ : nullptr; }
    bool has_probabilities() const { return has_probabilities_; }
    /// Returns the scale of a regressor's errors, or null if the model has none.
    const double* sigma() const { return sigma_; }
    /// True if rows get probabilities in addition to labels; a regressor has one scale for all rows, or none.
    bool gives_probabilities() const { return with_probabilities_ && view().task != Task::regression; }
    std::size_t n_probabilities() const { return predictor_ ? predictor_->n_probabilities() : n_labels_of(view()); }

  private:
    void open_artifact(std::string_view bytes, bool wants_probabilities) {
        const bool is_marked = reinterpret_cast<std::uintptr_t>(bytes.data()) % 8 != 0;  // a byte order mark was
                                                                                         // skipped
        if (is_marked) throw UnsupportedModel(text::described(text::marked_artifact));
        predictor_.emplace(bytes.data(), bytes.size(), kernels_);
        if (view().outputs.probability == ProbabilityKind::laplace_noise) sigma_ = view().outputs.numbers;
        has_probabilities_ = predictor_->n_probabilities() > 0 || sigma_;
        if (wants_probabilities && !has_probabilities_) throw UnsupportedModel(no_probabilities);
        with_probabilities_ = wants_probabilities;
        refuse_line_breaks();
    }

    /// Rejects line breaks in labels, because the output has one line per row and no quoting.
    void refuse_line_breaks() const {
        for (std::size_t k = 0; k < n_labels_of(view()); ++k) {
            std::string shown;
            for (const char c : label_at(view(), k).text)
                shown += c == '\n' ? "\\n" : c == '\r' ? "\\r" : std::string(1, c);
            if (shown.size() == label_at(view(), k).text.size()) continue;
            throw UnsupportedModel("label '" + shown + "' has a line break, and output_file has a line for each row: " +
                                   "`approxsvm score` writes such labels in quotes");
        }
    }

    void open_libsvm(std::string_view bytes, bool wants_probabilities) {
        if (bytes.find("svm_type") == std::string_view::npos) {
            const text::FileKind kind = text::kind_of(bytes);
            throw UnsupportedModel(neither + (kind.name.empty() ? "" : ": " + text::described(kind)));
        }
        exact_.emplace(text::parse_libsvm_model(bytes));
        has_probabilities_ = exact_->libsvm().has_probabilities;
        if (wants_probabilities && !has_probabilities_) throw UnsupportedModel(no_probabilities);
        if (has_probabilities_ && view().task == Task::regression)
            sigma_ = exact_->libsvm().probabilities.at("probA").data();
        with_probabilities_ = wants_probabilities;
        if (exact_->has_engine() && !wants_probabilities) predictor_.emplace(exact_->view(), kernels_);
    }

    static constexpr char no_probabilities[] = "Model does not support probabiliy estimates";  // LIBSVM's spelling
    static inline const std::string neither = "neither an approxsvm artifact nor a LIBSVM model";
    static constexpr std::string_view artifact_begins = "\x89\x41";  // the second byte differs in image files

    const dispatch::TargetTable& kernels_;
    text::MappedFile file_;
    std::optional<ExactModel> exact_;
    std::optional<dispatch::Predictor> predictor_;
    bool has_probabilities_ = false, with_probabilities_ = false;
    const double* sigma_ = nullptr;
};

}  // namespace approxsvm::tools
