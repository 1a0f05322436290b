#include "parts.hpp"

// Checks integer distances against naive arithmetic, and kernel sums of few values against long double. Compiled once
// per target; a CPU that lacks the target's instructions skips the whole program.

namespace few_values {

using namespace approxsvm;
using check::expect;

namespace {

std::size_t below(Random& random, std::size_t n) {
    return static_cast<std::size_t>(random() % n);
}

// --- the three steps by themselves

TEST(looked_up_bytes_are_added_up) {
    Random random(3);
    for (const std::size_t n_parts : {1u, 2u, 3u, 17u, 120u}) {
        for (const std::size_t n_panels : {1u, 3u, 16u}) {
            for (const std::size_t most : {1u, 15u, 255u}) {
                std::vector<std::uint8_t> codes(n_panels * n_parts * 64), tables(n_parts * 16);
                for (auto& code : codes) code = static_cast<std::uint8_t>(below(random, 16));
                for (auto& value : tables) value = static_cast<std::uint8_t>(below(random, most + 1));
                std::vector<std::uint32_t> run_ends, found(n_panels * 64, 99);
                for (std::size_t p = 255 / most; p < n_parts; p += 255 / most) {
                    run_ends.push_back(static_cast<std::uint32_t>(p));
                }
                run_ends.push_back(static_cast<std::uint32_t>(n_parts));
                const auto* const of_parts = reinterpret_cast<const std::uint8_t (*)[16]>(tables.data());
                looked_up_sums(codes.data(), n_parts, n_panels, of_parts, run_ends.data(), found.data());
                for (std::size_t lane = 0; lane < n_panels * 64; ++lane) {
                    std::uint32_t sum = 0;
                    for (std::size_t p = 0; p < n_parts; ++p) {
                        sum += tables[p * 16 + codes[(lane / 64 * n_parts + p) * 64 + lane % 64]];
                    }
                    CHECK_EQ(found[lane], sum);
                }
            }
        }
    }
}

TEST(looked_up_factors_are_multiplied) {
    Random random(9);
    for (const std::size_t n_words : {1u, 2u, 7u}) {
        for (const std::size_t n_panels : {1u, 3u, 16u}) {
            std::vector<std::uint32_t> panels(n_panels * n_words * 64);
            std::vector<float> factors(n_words * word_codes * 16), found(n_panels * 64);
            for (auto& word : panels) word = static_cast<std::uint32_t>(random());
            for (auto& factor : factors) factor = 1.0f - static_cast<float>(random() % 1000) / 2000.0f;
            looked_up_products(reinterpret_cast<const unsigned char*>(panels.data()), n_words, n_panels,
                               reinterpret_cast<const float (*)[16]>(factors.data()), found.data());
            for (std::size_t lane = 0; lane < n_panels * 64; ++lane) {
                float product = 1.0f;
                for (std::size_t g = 0; g < n_words * word_codes; ++g) {
                    const std::uint32_t word = panels[(lane / 64 * n_words + g / word_codes) * 64 + lane % 64];
                    product *= factors[16 * g + (word >> 4 * (g % word_codes) & 15)];
                }
                CHECK_EQ(found[lane], product);
            }
        }
    }
}

// --- all together

/// Support vectors origin + step (lowest + k), k < n_values[j], a code each; their layout points into these arrays.
struct Vectors {
    std::size_t n_sv, d;
    std::vector<std::uint8_t> codes;  // (n_sv, d)
    std::vector<double> coef;         // (n_functions, n_sv)
    std::vector<std::uint32_t> counts;
    std::vector<double> dictionary;
    std::vector<unsigned char> memory;
    ModelView view{};
    FewValues few{};

    Vectors(std::size_t n, const std::vector<std::size_t>& n_values, double origin, double step, double gamma,
            std::size_t n_labels, Random& random)
        : n_sv(n), d(n_values.size()), codes(n * d), coef((n_labels > 2 ? n_labels - 1 : 1) * n) {
        for (std::size_t k = 0; k < 16; ++k) dictionary.push_back(origin + static_cast<double>(k) * step);
        for (std::size_t i = 0; i < n * d; ++i) codes[i] = static_cast<std::uint8_t>(below(random, n_values[i % d]));
        for (double& a : coef) {
            a = std::ldexp(1.0 + static_cast<double>(random() % 1000) / 1000, static_cast<int>(below(random, 3)) - 1);
        }
        if (n_labels > 2) {
            counts.assign(n_labels, static_cast<std::uint32_t>(n / n_labels));
            counts.back() += static_cast<std::uint32_t>(n % n_labels);
        } else {
            for (double& a : coef) a = random() % 3 == 0 ? -a : a;
        }
        view.n_sv = n;
        view.n_features = d;
        view.n_labels = static_cast<std::uint32_t>(n_labels);
        view.n_decisions = n_decisions_of(n_labels);
        view.gamma = gamma;
        view.dual_coef = coef.data();
        view.class_counts = counts.data();
        view.packed.value_kind = 2;
        view.packed.n_dictionary = 16;
        view.packed.dictionary = reinterpret_cast<const unsigned char*>(dictionary.data());
        view.packed.values = codes.data();
        view.packed.n_values = n * d;
        Arena counter(nullptr);
        const FewValuesMemory counted(view, true, counter);
        memory.resize(counter.bytes_anywhere());
        Arena arena(memory.data());
        const FewValuesMemory pieces(view, true, arena);
        few = FewValuesWriter(view, pieces).write(1.0);
    }

    /// The support vector in each lane; n_sv where there is none.
    std::vector<std::size_t> vector_of_lane() const {
        std::vector<std::size_t> found(few.starts[few.n_segments], n_sv);
        FewSegments(view).for_each(few.starts, [&](std::size_t i, std::size_t, std::size_t lane) { found[lane] = i; });
        return found;
    }
};

void check_sums(Vectors& vectors, Random& random, const std::string& where) {
    const FewValues& few = vectors.few;
    const std::vector<std::size_t> of_lane = vectors.vector_of_lane();
    std::vector<std::uint8_t> codes(vectors.d + 7);
    std::vector<std::uint32_t> planes(few.n_parts), h(of_lane.size());
    std::vector<std::uint8_t> tables(16 * few.n_parts);
    const FewRow row{planes.data(), reinterpret_cast<std::uint8_t (*)[16]>(tables.data()), nullptr};
    for (int k = 0; k < 5; ++k) {
        for (std::size_t j = 0; j < vectors.d; ++j) {
            codes[j] = static_cast<std::uint8_t>(below(random, static_cast<std::size_t>(few.range[j]) + 1));
        }
        fill_few_row(few, codes.data(), row);
        sq_steps(few, row, 0, of_lane.size() / few_panel, h.data());
        std::vector<long double> kernel(vectors.n_sv);
        for (std::size_t lane = 0; lane < of_lane.size(); ++lane) {
            CHECK(h[lane] <= few.max_sq_steps);
            if (of_lane[lane] == vectors.n_sv) continue;
            std::uint32_t expected = 0;
            for (std::size_t j = 0; j < vectors.d; ++j) {
                const int steps =
                    static_cast<int>(few.lowest[j]) + codes[j] - vectors.codes[of_lane[lane] * vectors.d + j];
                expected += static_cast<std::uint32_t>(steps * steps);
            }
            EXPECT(h[lane] == expected, where + ": h is wrong in lane " + std::to_string(lane));
            const long double step = few.step;
            kernel[of_lane[lane]] = std::exp(-vectors.view.gamma * step * step * expected);
        }
        std::vector<float> kernels(of_lane.size());
        few_kernels(few, row, kernels.data());
        std::vector<double> sums64(few.n_functions);
        for (std::size_t s = 0; s < few.n_segments; ++s) {
            few_sums64(few, row, s, sums64.data());
            for (std::size_t f = 0; f < few.n_functions; ++f) {
                long double sum = 0, moduli = 0;
                for (std::size_t lane = few.starts[s]; lane < few.starts[s + 1]; ++lane) {
                    if (of_lane[lane] == vectors.n_sv) continue;
                    const long double a = vectors.coef[f * vectors.n_sv + of_lane[lane]];
                    sum += a * kernel[of_lane[lane]];
                    moduli += std::fabs(a) * kernel[of_lane[lane]];
                }
                const long double allowed = (2 * few.n_digits + few_depth) * 0x1.1p-24L * moduli + 0x1p-110L;
                EXPECT(std::fabs(few_sum(few, kernels.data(), s, f) - sum) <= allowed, where + ": by kernels");
                EXPECT(f > 0 || std::fabs(few_sum(few, row, s) - sum) <= allowed, where + ": at once");
                EXPECT(std::fabs(sums64[f] - sum) <= 0x1p-40L * moduli + 0x1p-900L, where + ": in float64");
            }
        }
    }
}

TEST(sums_are_those_of_the_definition) {
    Random random(4);
    const auto text = [](std::size_t n) { return std::to_string(n); };
    for (const std::size_t n_sv : {1u, 2u, 63u, 64u, 65u, 200u, 1023u, 1025u, 2500u}) {
        for (const std::size_t d : {1u, 3u, 31u, 32u, 33u, 70u}) {
            for (const std::size_t most : {2u, 3u, 4u, 9u, 16u}) {
                if (d * (most - 1) * (most - 1) > most_sq_steps) continue;
                std::vector<std::size_t> n_values(d, most);
                for (std::size_t j = 1; j < d; j += 3) n_values[j] = 2;
                for (std::size_t j = 2; j < d; j += 7) n_values[j] = 1;
                Vectors vectors(n_sv, n_values, 0.25, 0.5, 0.3 / static_cast<double>(d), n_sv % 2 ? 2 : 3, random);
                // A support vector alone takes less by its features.
                if (!vectors.few.is_usable || vectors.few.has_factors) continue;
                check_sums(vectors, random, text(n_sv) + " vectors, " + text(d) + " features of " + text(most));
            }
        }
    }
}

TEST(what_is_no_grid_is_refused) {
    Random random(5);
    const auto usable = [&](double origin, double step, std::size_t d, std::size_t most, double gamma) {
        const Vectors vectors(50, std::vector<std::size_t>(d, most), origin, step, gamma, 2, random);
        return vectors.few.is_usable && !vectors.few.has_factors;
    };
    CHECK(usable(0.0, 1.0, 9, 2, 0.1));
    CHECK(usable(-3.0, 1.5, 9, 4, 0.1));
    CHECK(usable(0.0, 1.0 / 3.0, 9, 4, 0.1));
    CHECK(usable(0.0, 1.0, 9, 2, 0x1p-1070));
    CHECK(usable(0.0, 1.0, 9, 2, 1e300));
    CHECK(!usable(0.0, 1.0, 20, 16, 0.1));       // too large squares
    CHECK(!usable(1e8, 1.0 / 3.0, 9, 4, 1e20));  // values beside their places, with kernels that narrow
}

}  // namespace

}  // namespace few_values
