#include "parts.hpp"

// Rounding errors of the kernel values in listed sums, measured against long double. Compiled once per target.

namespace listed_sums {

using namespace approxsvm;
using check::expect;

// Each kernel value is tested separately, because coefficients may single it out: vectors near the row, on its line
// from the center, and up to where distances are rejected.
TEST(errors_of_listed_sums_near_and_far) {
    Random random(10);
    std::normal_distribution<double> normal;
    std::size_t n_near = 0, n_refused = 0;
    for (const std::size_t d : {1u, 2u, 17u, 70u, 600u}) {
        for (const double far : {1.0, 6.0, 30.0, 100.0, 400.0}) {  // distance of the farthest vector, times sqrt(gamma)
            constexpr std::size_t n_sv = 64;
            const double half_theta = std::exp(normal(random)), unit = 1.0 / std::sqrt(half_theta);
            for (const double of_row : {0.0, 0.1, 1.0, 3.0, 10.0, 60.0}) {
                std::vector<double> direction(d);
                double norm = 0;
                for (double& x : direction) {
                    x = normal(random);
                    norm += x * x;
                }
                for (double& x : direction) x *= unit / std::sqrt(norm);
                std::vector<float> u(d);
                for (std::size_t j = 0; j < d; ++j) u[j] = static_cast<float>(of_row * direction[j]);
                std::vector<std::vector<double>> vectors(n_sv, std::vector<double>(d));
                for (std::size_t i = 0; i < n_sv; ++i) {
                    const double share = static_cast<double>(i) / (n_sv - 1), at = std::min(of_row + 12 * share, far);
                    for (std::size_t j = 0; j < d; ++j) {
                        const double aside = i % 2 == 0 ? 0 : 0.2 * unit * normal(random) / std::sqrt(double(d));
                        const double along = (i + 1 == n_sv ? far : at) * direction[j];
                        vectors[i][j] = static_cast<float>(along + (i + 1 == n_sv ? 0 : aside));
                    }
                }
                const ClassSizes sizes{nullptr, n_sv, 1, 1};
                std::vector<char> memory(kernel_sums_bytes<float>(sizes, d));
                KernelSumsWriter<float> writer(memory.data(), sizes, d, half_theta);
                for (const std::vector<double>& x : vectors) {
                    writer.add_support_vector({x.data(), nullptr, d}, nullptr, 0, 1.0);
                }
                const KernelVectors<float> kernels = writer.expansion().vectors;
                const float half_sq_norm = half_sq_norm_row(kernels, u.data(), d);
                std::vector<float> found(n_sv);
                kernels_row(kernels, u.data(), half_sq_norm, found.data());
                Arena counter(nullptr);
                const ListMemory counted(tiles_for(n_sv) + 1, 1, counter);
                std::vector<char> room(counter.bytes_anywhere());
                Arena arena(room.data());
                ListWriter list(kernels, ListMemory(tiles_for(n_sv) + 1, 1, arena), 1);
                for (std::size_t i = 0; i < n_sv; ++i) list.add(i, [](std::size_t) { return 1.0; });
                list.end_lists();
                std::vector<float> padded(row_stride(d)), rows(n_sv * row_stride(d)), listed(n_sv + lanes);
                std::copy(u.begin(), u.end(), padded.begin());
                fill_rows(kernels, n_sv, rows.data());
                kernels_of_list(kernels, rows.data(), list.list(), 0, tiles_for(n_sv), padded.data(), half_sq_norm,
                                listed.data());
                const ListedErrors errors = listed_errors(kernels, static_cast<double>(half_sq_norm));
                const bool is_known = errors.of_moduli < infinity;
                n_refused += !is_known;
                n_near += is_known && errors.of_all_moduli > 0x1p-57;
                for (std::size_t i = 0; is_known && i < n_sv; ++i) {
                    long double sq_distance = 0;
                    for (std::size_t j = 0; j < d; ++j) {
                        const long double difference = static_cast<long double>(vectors[i][j]) - u[j];
                        sq_distance += difference * difference;
                    }
                    const long double truth = std::exp(-half_theta * sq_distance);
                    const long double bound = errors.of_moduli * truth + errors.of_all_moduli;
                    const long double error = std::max(std::fabs(found[i] - truth), std::fabs(listed[i] - truth));
                    EXPECT(error <= bound, "K is off by " + check::show(error) + ", bound " + check::show(bound));
                }
            }
        }
    }
    EXPECT(n_near > 20 && n_refused > 5, "not what was meant to be tried");
}

}  // namespace listed_sums
