// Probabilities from decision values, bit for bit those of LIBSVM: coupled sigmoids of pairs. Operations must keep
// their order: nothing here may be contracted (-ffp-contract=off), reordered or factored out.
#pragma once

#include <cmath>

#include "../model_view.hpp"
#include "votes.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// LIBSVM's constants. Pairwise probabilities are clipped to this distance from 0 and 1. Coupling ends when the classes
// differ by less than a share of the tolerance, or after a number of sweeps that is at least the number of classes.
constexpr double least_probability = 1e-7, coupling_tolerance = 0.005;
constexpr std::size_t coupling_sweeps = 100;

// 1 / (1 + exp(x)), in a form that neither overflows nor loses small probabilities.
inline double sigmoid(double x) {
    return x >= 0.0 ? std::exp(-x) / (1.0 + std::exp(-x)) : 1.0 / (1.0 + std::exp(x));
}

// P(first class) = 1 / (1 + exp(a f + b)).
inline double sigmoid_probability(double value, double a, double b) {
    return sigmoid(value * a + b);
}

// Clips a probability away from 0 and 1. NaN becomes the smallest probability.
inline double clipped_probability(double p) {
    const double raised = p > least_probability ? p : least_probability;
    return raised < 1.0 - least_probability ? raised : 1.0 - least_probability;
}
inline double pair_probability(double value, double a, double b) {
    return clipped_probability(sigmoid_probability(value, a, b));
}

constexpr std::size_t coupling_doubles(std::size_t n_classes) {
    return n_classes * (n_classes + 1);
}

// Turns q[i][j] = P(i given i or j) into the matrix Q of Wu, Lin and Weng, in place: Q_tt = sum over j != t of q_jt^2,
// Q_tj = -q_jt q_tj.
inline void make_coupling_matrix(std::size_t k, double* q) {
    for (std::size_t t = 0; t < k; ++t) {
        double sum = 0.0;
        for (std::size_t j = 0; j < k; ++j) {
            if (j != t) sum += q[j * k + t] * q[j * k + t];
        }
        q[t * k + t] = sum;
    }
    for (std::size_t t = 0; t < k; ++t) {
        for (std::size_t j = t + 1; j < k; ++j) q[t * k + j] = q[j * k + t] = -q[j * k + t] * q[t * k + j];
    }
}

// Computes qp = Q p, (k,), and returns whether p is close enough to a fixed point.
inline bool is_coupled(std::size_t k, const double* q, const double* p, double* qp, double& pqp) {
    pqp = 0.0;
    for (std::size_t t = 0; t < k; ++t) {
        qp[t] = 0.0;
        for (std::size_t j = 0; j < k; ++j) qp[t] += q[t * k + j] * p[j];
        pqp += p[t] * qp[t];
    }
    double largest = 0.0;
    for (std::size_t t = 0; t < k; ++t) {
        const double error = std::fabs(qp[t] - pqp);
        if (error > largest) largest = error;
    }
    return largest < coupling_tolerance / static_cast<double>(k);
}

// Probabilities of k classes from those of all pairs: the second method of Wu, Lin and Weng, "Probability estimates for
// multi-class classification by pairwise coupling" (JMLR 2004), which minimizes sum_ij (q_ji p_i - q_ij p_j)^2. `q`,
// (k, k) with an arbitrary diagonal, is overwritten; `qp` is scratch space for k numbers.
inline void couple_probabilities(std::size_t k, double* q, double* qp, double* p) {
    make_coupling_matrix(k, q);
    for (std::size_t t = 0; t < k; ++t) p[t] = 1.0 / static_cast<double>(k);
    const std::size_t most_iterations = k > coupling_sweeps ? k : coupling_sweeps;
    for (std::size_t iteration = 0; iteration < most_iterations; ++iteration) {
        double pqp;
        if (is_coupled(k, q, p, qp, pqp)) return;
        for (std::size_t t = 0; t < k; ++t) {
            const double diagonal = q[t * k + t], step = (-qp[t] + pqp) / diagonal, scale = 1.0 + step;
            p[t] += step;
            pqp = (pqp + step * (step * diagonal + 2.0 * qp[t])) / scale / scale;
            for (std::size_t j = 0; j < k; ++j) {
                qp[j] = (qp[j] + step * q[t * k + j]) / scale;
                p[j] /= scale;
            }
        }
    }
}

// Probabilities of all classes, (n_classes,), from the values of all pairs and LIBSVM's probA and probB, one of each
// per pair. Two classes are coupled only on request: scikit-learn's copy of LIBSVM couples them, and stops up to 0.005
// from the sigmoid. `room` is scratch space for coupling_doubles(n_classes) numbers. Returns the first of the most
// probable classes, which is LIBSVM's label with -b 1; it may differ from the winner of the votes.
inline std::size_t class_probabilities(std::size_t n_classes, const double* values, const double* prob_a,
                                       const double* prob_b, double* probabilities, double* room,
                                       bool couple_two_classes = false) {
    for_each_pair(n_classes, [=](std::size_t pair, std::size_t i, std::size_t j) {
        const double p = pair_probability(values[pair], prob_a[pair], prob_b[pair]);
        room[i * n_classes + j] = p;
        room[j * n_classes + i] = 1.0 - p;
    });
    if (n_classes == 2 && !couple_two_classes) {
        probabilities[0] = room[1];
        probabilities[1] = room[2];
    } else {
        couple_probabilities(n_classes, room, room + n_classes * n_classes, probabilities);
    }
    return first_largest(n_classes, probabilities);
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm
