#include <approxsvm/approxsvm.hpp>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "artifact_models.hpp"
#include "check.hpp"

// Packed support vectors: every storage and every kind of values comes back exactly, and every MUST of models/FORMAT.md
// about them holds.

using namespace artifact_models;
using artifact_writer::certified;
using artifact_writer::exact;
using artifact_writer::Packing;

namespace {

/// Status after a change to the packed vectors of a model with five vectors of three features.
Status with_packed(std::uint32_t storage, std::uint32_t kind, const std::function<void(Packing&)>& change,
                   std::uint32_t mode = exact) {
    const artifact_writer::Model model = true_model(mode);
    Packing packed = artifact_writer::pack(model.support_vectors, 3, storage, kind);
    change(packed);
    return with_content(model, artifact_writer::support_vectors, packed.bytes());
}

void expect_bad(const std::function<void(Packing&)>& change, std::uint32_t storage, std::uint32_t kind) {
    CHECK_EQ(with_packed(storage, kind, change), Status::bad_support_vectors);
}

void for_all_kinds(const std::function<void(std::uint32_t, std::uint32_t)>& test) {
    for (std::uint32_t storage = 0; storage < 3; ++storage) {
        for (std::uint32_t kind = 0; kind < 4; ++kind) test(storage, kind);
    }
}

/// Reads what was packed.
void expect_round_trip(const std::vector<std::vector<double>>& vectors, std::size_t d, std::uint32_t storage,
                       std::uint32_t kind) {
    artifact_writer::Model model = true_model(exact, d, vectors.size());
    model.support_vectors = vectors;
    model.feature_names.clear();
    model.storage = storage;
    model.value_kind = kind;
    const Bytes bytes = artifact_writer::written(model);
    const ExactCopy copy(bytes);
    ModelView view;
    CHECK_EQ(open_artifact(copy.data(), bytes.size(), view), Status::ok);
    SupportVectorReader reader(view);
    for (const std::vector<double>& expected : vectors) {
        std::vector<double> vector(d, -1.0);
        reader.next(vector.data());
        CHECK(vector == expected);
    }
}

}  // namespace

TEST(packed_vectors_come_back_exactly) {
    for_all_kinds([](std::uint32_t storage, std::uint32_t kind) {
        for (const std::size_t d : std::vector<std::size_t>{1, 2, 7, 255, 256, 257, 65535, 65536}) {
            const std::size_t n_sv = d < 1000 ? 9 : 2;
            std::vector<std::vector<double>> vectors(n_sv, std::vector<double>(d));
            for (std::size_t i = 0; i < n_sv; ++i) {
                for (std::size_t j = i; j < d; j += 1 + i) vectors[i][j] = 0.25 * static_cast<double>((i + j) % 200);
            }
            vectors[n_sv - 1].assign(d, 0.5);  // a full row after an emptier one
            expect_round_trip(vectors, d, storage, kind);
        }
    });
    const double limit = std::numeric_limits<double>::max(), tiny = std::numeric_limits<double>::denorm_min();
    for (std::uint32_t storage = 0; storage < 3; ++storage) {
        for (const std::uint32_t kind : {0u, 2u, 3u}) {
            expect_round_trip({{limit, -limit, tiny}, {0, 0, 0}, {1e-300, 0.1, -tiny}}, 3, storage, kind);
        }
        for (const std::uint32_t kind : {1u, 2u, 3u}) expect_round_trip({{3, 3}, {3, 3}}, 2, storage, kind);
        expect_round_trip({{0x1p127, -0x1p-149}}, 2, storage, 1);
    }
    std::vector<std::vector<double>> many(300, std::vector<double>(220));  // 65,536 different values, and no more
    for (std::size_t k = 0; k < 300 * 220; ++k) many[k / 220][k % 220] = static_cast<double>(k % 65536);
    for (std::uint32_t storage = 0; storage < 3; ++storage) expect_round_trip(many, 220, storage, 3);
    for (const std::uint32_t mode : {certified, exact}) {
        for (const std::uint32_t storage : {0u, 1u}) {
            artifact_writer::Model none = true_model(mode, 3, 0);
            none.storage = storage;
            CHECK_EQ(opened(artifact_writer::written(none)), Status::ok);
        }
    }
}

TEST(must_support_vectors_have_a_true_header) {
    for (const std::uint32_t mode : {certified, exact}) {
        const artifact_writer::Model model = small_model(mode);
        for (std::size_t n_bytes = 0; n_bytes < 32; ++n_bytes) {
            CHECK_EQ(with_content(model, artifact_writer::support_vectors, Bytes(n_bytes)),
                     Status::bad_support_vectors);
        }
    }
    for_all_kinds([](std::uint32_t storage, std::uint32_t kind) {
        CHECK_EQ(with_packed(storage, kind, [](Packing&) {}), Status::ok);
        CHECK_EQ(with_packed(storage, kind, [](Packing&) {}, certified), Status::ok);
        for (const std::uint32_t wrong : {3u, 256u, ~0u}) {
            expect_bad([=](Packing& p) { p.storage = wrong; }, storage, kind);
        }
        for (const std::uint32_t other : {0u, 1u, 2u}) {
            if (other != storage) expect_bad([=](Packing& p) { p.storage = other; }, storage, kind);
        }
        for (const std::uint32_t wrong : {4u, 255u, 0x10000u, ~0u}) {
            const Bytes bytes = artifact_writer::pack(true_model(exact).support_vectors, 3, storage, kind).bytes();
            for (const std::size_t field : {std::size_t{0}, std::size_t{4}, std::size_t{8}}) {
                Bytes changed = bytes;
                put(changed, field, wrong);
                CHECK_EQ(with_content(true_model(exact), artifact_writer::support_vectors, changed),
                         Status::bad_support_vectors);
            }
        }
        // The width of the columns is the least that will do.
        for (const std::uint32_t wrong : {0u, 1u, 2u, 3u, 4u, 8u}) {
            if (wrong != (storage > 0 ? 1u : 0u)) expect_bad([=](Packing& p) { p.index_bytes = wrong; }, storage, kind);
        }
    });
}

TEST(must_support_vectors_have_a_dictionary_for_codes_only) {
    for_all_kinds([](std::uint32_t storage, std::uint32_t kind) {
        for (const std::uint32_t n : {1u, 2u, 65536u, 65537u, 0x80000000u, ~0u}) {
            const std::uint32_t right =
                kind < 2 ? 0 : artifact_writer::pack(true_model(exact).support_vectors, 3, storage, kind).n_dictionary;
            if (n != right) expect_bad([=](Packing& p) { p.n_dictionary = n; }, storage, kind);
        }
        if (kind < 2) {
            expect_bad([](Packing& p) { p.n_dictionary = 1, p.dictionary = {0.5}; }, storage, kind);
            return;
        }
        expect_bad([](Packing& p) { p.n_dictionary = 0, p.dictionary.clear(); }, storage, kind);
        for (const double bad : {infinite, -infinite, nan64}) {
            expect_bad([=](Packing& p) { p.dictionary.back() = bad; }, storage, kind);
        }
        for (const std::uint32_t beyond : {0u, 1u, 100u}) {
            for (const std::size_t place : {std::size_t{0}, std::size_t{1}}) {
                expect_bad(
                    [=](Packing& p) {
                        p.values[place * (p.values.size() - 1)] = static_cast<double>(p.n_dictionary + beyond);
                    },
                    storage, kind);
            }
        }
    });
    const auto fill = [](std::uint32_t n) {
        return [n](Packing& p) {
            p.dictionary.assign(n, 0.5);
            p.n_dictionary = n;
        };
    };
    CHECK_EQ(with_packed(0, 3, fill(65536)), Status::ok);
    CHECK_EQ(with_packed(0, 3, fill(65537)), Status::bad_support_vectors);
    CHECK_EQ(with_packed(0, 2, fill(256)), Status::ok);
}

TEST(must_support_vectors_be_finite) {
    for (std::uint32_t storage = 0; storage < 3; ++storage) {
        for (std::uint32_t kind = 0; kind < 2; ++kind) {
            for (const double bad : {infinite, -infinite, nan64}) {
                expect_bad([=](Packing& p) { p.values.front() = bad; }, storage, kind);
                expect_bad([=](Packing& p) { p.values.back() = bad; }, storage, kind);
            }
        }
    }
    for (std::uint32_t kind = 0; kind < 4; ++kind) {
        for (const double bad : {infinite, -infinite, nan64}) {
            for (const std::size_t j : {std::size_t{0}, std::size_t{2}}) {
                expect_bad([=](Packing& p) { p.reference[j] = bad; }, 2, kind);
            }
        }
        expect_bad([](Packing& p) { p.reference.pop_back(); }, 2, kind);
        expect_bad([](Packing& p) { p.reference.push_back(0.0); }, 2, kind);
    }
}

TEST(must_support_vectors_be_as_many_as_they_claim) {
    for_all_kinds([](std::uint32_t storage, std::uint32_t kind) {
        const std::uint64_t n = artifact_writer::pack(true_model(exact).support_vectors, 3, storage, kind).n_values;
        const std::uint64_t top = ~std::uint64_t{0};
        // Such that a product with any width wraps around to something small.
        for (const std::uint64_t wrong :
             {std::uint64_t{0}, n - 1, n + 1, n + (top >> 1) + 1, n + (top >> 2) + 1, n + (top >> 3) + 1, top, top - 7,
              top >> 1, top >> 3, std::uint64_t{1} << 40}) {
            expect_bad([=](Packing& p) { p.n_values = wrong; }, storage, kind);
            if (kind < 2) continue;
            // One dictionary entry: no values at all in the file.
            const auto constant = [=](Packing& p) {
                p.dictionary = {0.5};
                p.n_dictionary = 1;
            };
            CHECK_EQ(with_packed(storage, kind, constant), Status::ok);
            expect_bad([=](Packing& p) { constant(p), p.n_values = wrong; }, storage, kind);
        }
        expect_bad([](Packing& p) { p.values.insert(p.values.end(), 8, 0.0); }, storage, kind);
        expect_bad([](Packing& p) { p.values.resize(p.values.size() - 8); }, storage, kind);
    });
}

TEST(must_support_vectors_have_counts_and_columns_that_fit) {
    for_all_kinds([](std::uint32_t storage, std::uint32_t kind) {
        if (storage == 0) return;
        for (std::size_t i = 0; i < 5; ++i) {
            for (const std::uint64_t more : {std::uint64_t{1}, std::uint64_t{3}, std::uint64_t{200}}) {
                expect_bad([=](Packing& p) { p.counts[i] += more; }, storage, kind);
            }
            expect_bad([=](Packing& p) { p.counts[i] += p.counts[i] > 0 ? ~std::uint64_t{0} : 1; }, storage, kind);
        }
        expect_bad([](Packing& p) { p.counts.assign(5, 255); }, storage, kind);
        expect_bad([](Packing& p) { p.counts.assign(5, 0); }, storage, kind);
        expect_bad([](Packing& p) { p.counts.insert(p.counts.end(), 8, 0); }, storage, kind);
        expect_bad([](Packing& p) { p.columns.insert(p.columns.end(), 8, 0); }, storage, kind);
        // Two values to each vector: a sum that is right cannot hide columns that are wrong.
        const auto pairs = [](const std::vector<std::uint64_t>& columns, std::uint64_t first_count = 2) {
            return [=](Packing& p) {
                p.counts = {first_count, 4 - first_count, 0, 0, 0};
                p.columns = columns;
                p.values.assign(4, 0.0);
                p.n_values = 4;
            };
        };
        CHECK_EQ(with_packed(storage, kind, pairs({0, 2, 1, 2})), Status::ok);
        CHECK_EQ(with_packed(storage, kind, pairs({0, 1, 2, 0}, 3)), Status::ok);
        const std::vector<std::vector<std::uint64_t>> wrong = {
            {0, 0, 1, 2}, {0, 2, 2, 2}, {1, 0, 1, 2}, {0, 2, 2, 1}, {0, 3, 1, 2}, {0, 2, 1, 255}, {255, 0, 1, 2}};
        for (const auto& columns : wrong) expect_bad(pairs(columns), storage, kind);
        expect_bad(pairs({0, 1, 2, 2}, 4), storage, kind);
        expect_bad(pairs({0, 2, 1, 2}, 3), storage, kind);
    });
}

TEST(must_support_vectors_be_padded_with_zeros) {
    std::size_t n_padding = 0;
    for_all_kinds([&](std::uint32_t storage, std::uint32_t kind) {
        const artifact_writer::Model model = true_model(exact);
        const Packing packed = artifact_writer::pack(model.support_vectors, 3, storage, kind);
        const Bytes bytes = packed.bytes();
        std::size_t offset = 24;
        const auto check_padding = [&](std::size_t used) {
            const std::size_t end = (offset + used + 7) / 8 * 8;
            for (std::size_t i = offset + used; i < end; ++i, ++n_padding) {
                for (const unsigned wrong : {1u, 128u}) {
                    Bytes changed = bytes;
                    changed[i] = static_cast<unsigned char>(wrong);
                    CHECK_EQ(with_content(model, artifact_writer::support_vectors, changed),
                             Status::bad_support_vectors);
                }
            }
            offset = end;
        };
        constexpr std::size_t widths[] = {8, 4, 1, 2};
        check_padding(8 * packed.dictionary.size());
        check_padding(8 * packed.reference.size());
        check_padding(packed.counts.size());
        check_padding(packed.columns.size());
        check_padding(widths[kind] * packed.values.size());
        CHECK_EQ(offset, bytes.size());
        for (std::size_t n = 0; n < bytes.size(); ++n) {  // cut short anywhere
            const Bytes cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n));
            CHECK_EQ(with_content(model, artifact_writer::support_vectors, cut), Status::bad_support_vectors);
        }
        for (std::size_t more = 1; more <= 64; ++more) {
            Bytes longer = bytes;
            longer.resize(bytes.size() + more);
            CHECK_EQ(with_content(model, artifact_writer::support_vectors, longer), Status::bad_support_vectors);
        }
    });
    CHECK(n_padding > 8);
}
