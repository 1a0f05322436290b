// The float32 engine for the pairs of one class, and the network that guesses which class wins for a row, so that the
// engine begins with that class's pairs. The score of a class is a weighted sum of the landmarks' kernel values and of
// the coordinates u, plus a constant.
#ifndef APPROXSVM_EXACT_WINNER_ENGINE_HPP
#define APPROXSVM_EXACT_WINNER_ENGINE_HPP

#include "../model_view.hpp"
#include "rbf_row.hpp"
#include "rbf_winner.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

struct Speculation {
    std::size_t n_classes, n_tiles;  // `n_classes` is 0 if there is no network
    ListOfVectors landmarks;
    KernelVectors<float> copies;  // copies of the landmarks in list order, for single rows
    const float* linear;          // panels with one vector per class, laid out like support vectors
    const float* constants;       // constant for each class, (n_classes,) rounded up to whole tiles
};

struct SpeculationMemory {
    ListMemory landmarks;
    std::size_t n_lanes;
    float *copies, *half_sq_norms, *linear, *constants;

    SpeculationMemory(std::size_t n_classes, std::size_t n_features, std::size_t n_landmarks, Arena& arena)
        : landmarks(n_classes > 0 ? tiles_for(n_landmarks) : 0, n_classes, arena),
          n_lanes(n_classes > 0 ? lanes_for<float>(n_landmarks) : 0),
          copies(arena.take<float>(n_lanes, n_features)),
          half_sq_norms(arena.take<float>(n_lanes)),
          linear(arena.take<float>(panels_for<float>(n_classes) * panel_width<float>, n_features)),
          constants(arena.take<float>(tiles_for(n_classes) * tile_rows)) {}
    // Takes memory if the model has the section "speculation" and uses it.
    SpeculationMemory(const ModelView& view, bool is_used, Arena& arena)
        : SpeculationMemory(is_used ? view.n_labels : 0, view.n_features, view.speculation.n_landmarks, arena) {}
};

class SpeculationWriter {
  public:
    SpeculationWriter(const KernelVectors<float>& kernels, const SpeculationMemory& memory, std::size_t n_classes)
        : kernels_(kernels),
          landmarks_(kernels, memory.landmarks, n_classes),
          memory_(memory),
          n_classes_(n_classes),
          n_features_(kernels.n_features) {
        const std::size_t n_linear = panels_for<float>(n_classes) * n_features_ * panel_width<float>;
        for (std::size_t k = 0; k < n_linear; ++k) memory_.linear[k] = 0.0f;
        for (std::size_t c = 0; c < tiles_for(n_classes) * tile_rows; ++c) memory_.constants[c] = 0.0f;
        for (std::size_t k = 0; k < memory_.n_lanes * n_features_; ++k) memory_.copies[k] = 0.0f;
        for (std::size_t l = 0; l < memory_.n_lanes; ++l) memory_.half_sq_norms[l] = 0.0f;
    }

    void set_constant(std::size_t c, double constant) { memory_.constants[c] = narrowed(constant); }
    void set_weight(std::size_t c, std::size_t feature, double weight) {
        constexpr std::size_t width = panel_width<float>;
        memory_.linear[(c / width * n_features_ + feature) * width + c % width] = narrowed(weight);
    }
    // Adds the support vector in this lane as a landmark, with one weight per class.
    void add_landmark(std::size_t lane, const float* weights) {
        constexpr std::size_t width = panel_width<float>;
        landmarks_.add(lane, [=](std::size_t c) { return weights[c]; });
        const float* const from = kernels_.panels + lane / width * width * n_features_ + lane % width;
        float* const to = memory_.copies + n_added_ / width * width * n_features_ + n_added_ % width;
        for (std::size_t j = 0; j < n_features_; ++j) to[j * width] = from[j * width];
        memory_.half_sq_norms[n_added_++] = kernels_.half_sq_norms[lane];
    }
    // Returns the network, which is complete after all landmarks have been added.
    Speculation speculation() {
        landmarks_.end_list();
        KernelVectors<float> copies = kernels_;
        copies.n_sv = n_added_;
        copies.n_panels = panels_for<float>(n_added_);
        copies.panels = memory_.copies;
        copies.half_sq_norms = memory_.half_sq_norms;
        return {n_classes_, landmarks_.n_tiles(), landmarks_.list(), copies, memory_.linear, memory_.constants};
    }

  private:
    static float narrowed(double x) { return static_cast<float>(x < -1e30 ? -1e30 : x > 1e30 ? 1e30 : x); }

    const KernelVectors<float>& kernels_;
    ListWriter landmarks_;
    const SpeculationMemory memory_;
    const std::size_t n_classes_, n_features_;
    std::size_t n_added_ = 0;
};

// The stored weights apply to z - center. The network is evaluated at the scaled rows of the engine that owns
// `kernels`, which are relative to engine_center, or to the origin if that is null.
APPROXSVM_COLD inline Speculation fill_speculation(const ModelView& view, const SpeculationMemory& memory,
                                                   const KernelVectors<float>& kernels, const std::uint32_t* lane_of,
                                                   const double* engine_center) {
    const SpeculationView& stored = view.speculation;
    const std::size_t n = view.n_labels, d = view.n_features;
    const float *const of_features = stored.weights + n, *const of_landmarks = of_features + d * n;
    SpeculationWriter writer(kernels, memory, n);
    for (std::size_t c = 0; c < n; ++c) {
        double constant = static_cast<double>(stored.weights[c]);
        for (std::size_t j = 0; j < d; ++j) {
            const double weight = static_cast<double>(of_features[j * n + c]);
            const double center = engine_center ? engine_center[j] : 0.0;
            constant += weight * (center - static_cast<double>(view.center[j]));
            writer.set_weight(c, j, weight / view.input_scale);
        }
        writer.set_constant(c, constant);
    }
    for (std::size_t m = 0; m < stored.n_landmarks; ++m) {
        writer.add_landmark(lane_of[stored.landmarks[m]], of_landmarks + m * n);
    }
    return writer.speculation();
}

// Finds the class with the best score for each row of a block. For each row, `scores` must have space for n_classes
// floats, with n_classes rounded up to whole tiles.
template <int Registers>
inline void speculated_classes_block(const KernelVectors<float>& kernels, const Speculation& speculation,
                                     const float* block, const float* half_sq_norm, float* scores,
                                     std::uint32_t* speculated) {
    constexpr std::size_t stride = Registers * static_cast<std::size_t>(lanes);
    const std::size_t n = speculation.n_classes;
    products_block<Registers>(speculation.linear, kernels.n_features, n, block, scores);
    for (std::size_t c = 0; c < n; ++c) {
        for (std::size_t r = 0; r < stride; ++r) scores[c * stride + r] += speculation.constants[c];
    }
    for (std::size_t first = 0; first < speculation.n_tiles; first += listed_tiles) {
        const std::size_t left = speculation.n_tiles - first;
        add_listed<Registers>(kernels, speculation.landmarks, n, first, left < listed_tiles ? left : listed_tiles,
                              block, half_sq_norm, scores);
    }
    for (std::size_t r = 0; r < stride; ++r) speculated[r] = 0;
    for (std::size_t c = 1; c < n; ++c) {
        for (std::size_t r = 0; r < stride; ++r) {  // scores[r] is the best score so far
            const bool better = scores[c * stride + r] > scores[r];
            speculated[r] = better ? static_cast<std::uint32_t>(c) : speculated[r];
            scores[r] = better ? scores[c * stride + r] : scores[r];
        }
    }
}

// Finds the class with the best score for one row, as speculated_classes_block does for a block. `scores` must have
// space for whole panels of classes, `values` for whole panels of landmarks, `room` for n_classes * tile_rows doubles
// and `sums` for n_classes.
inline std::size_t speculated_class_row(const Speculation& speculation, const float* u, float half_sq_norm,
                                        float* scores, float* values, double* room, double* sums) {
    const std::size_t n = speculation.n_classes;
    products_row(speculation.linear, speculation.copies.n_features, panels_for<float>(n), u, scores);
    kernels_row(speculation.copies, u, half_sq_norm, values);
    const auto value_of = [=](std::size_t k) { return values[k]; };
    listed_sums_row(speculation.landmarks, n, 0, speculation.n_tiles, value_of, room, sums);
    std::size_t best = 0;
    double highest = 0.0;
    for (std::size_t c = 0; c < n; ++c) {
        const double score = sums[c] + static_cast<double>(scores[c]) + static_cast<double>(speculation.constants[c]);
        if (c == 0 || score > highest) {
            highest = score;
            best = c;
        }
    }
    return best;
}

// --- work in multiply-adds (predict/row_work.hpp)

// Upper bound on the number of list entries, rounded up to tiles of any target's width.
constexpr std::size_t listed_at_most(std::size_t n_vectors) {
    return n_vectors + 7;
}

// Returns the work for the kernel values of n_lanes lanes.
inline double work_of_kernels(std::size_t n_lanes, std::size_t n_features) {
    return static_cast<double>(n_lanes) * (static_cast<double>(n_features) + work_of_exp);
}

// Returns the network's work for a row; 0 if there is no network.
inline double work_of_network(const ModelView& view) {
    if (!view.sections[section::speculation]) return 0.0;
    const std::size_t n = view.n_labels, d = view.n_features, n_landmarks = view.speculation.n_landmarks;
    return static_cast<double>(lanes_for<float>(n) * d + listed_at_most(n_landmarks) * n) +
           work_of_kernels(lanes_for<float>(n_landmarks), d);
}

// --- the engine with its network

struct WinnerEngine {
    bool is_usable;
    WinnerKernelSum sums;
    Speculation speculation;

    bool speculates() const { return speculation.n_classes > 0; }
    std::size_t speculated_class(const float* u, float half_sq_norm, float* scores, float* values, double* room,
                                 double* own) const {
        return speculated_class_row(speculation, u, half_sq_norm, scores, values, room, own);
    }
    template <int Registers>
    void speculate_block(const float* block, const float* half_sq_norm, float* scores,
                         std::uint32_t* speculated) const {
        speculated_classes_block<Registers>(*sums.kernels, speculation, block, half_sq_norm, scores, speculated);
    }
};

struct WinnerEngineMemory {
    WinnerMemory lists;
    SpeculationMemory speculation;

    WinnerEngineMemory(const ModelView& view, const PairCoefficients& pairs, Arena& arena)
        : lists(pairs, view.n_features, arena),
          speculation(view, lists.is_usable && view.sections[section::speculation], arena) {}
};

APPROXSVM_COLD inline WinnerEngine fill_winner_engine(const ModelView& view, const PairCoefficients& pairs,
                                                      const KernelVectors<float>& kernels,
                                                      const WinnerEngineMemory& memory, const double* engine_center) {
    WinnerEngine engine{};
    engine.is_usable = memory.lists.is_usable;
    if (!engine.is_usable) return engine;
    engine.sums = fill_winner(pairs, kernels, memory.lists);
    if (view.sections[section::speculation])
        engine.speculation = fill_speculation(view, memory.speculation, kernels, memory.lists.lane_of, engine_center);
    return engine;
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif
