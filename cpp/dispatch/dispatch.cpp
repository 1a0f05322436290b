#include <cstdlib>
#include <stdexcept>

#include "cpu_features.hpp"
#include "target_table.hpp"

namespace approxsvm::dispatch {

#if defined(APPROXSVM_WITH_BASELINE)
extern const TargetTable kernels_baseline;
#endif
#if defined(APPROXSVM_WITH_AVX512)
extern const TargetTable kernels_avx512;
#endif
#if defined(APPROXSVM_WITH_AVX2)
extern const TargetTable kernels_avx2;
#endif
#if defined(APPROXSVM_WITH_NEON)
extern const TargetTable kernels_neon;
#endif

namespace {

#if defined(APPROXSVM_WITH_BASELINE) || defined(APPROXSVM_WITH_NEON)
bool runs_always() {
    return true;
}
#endif

struct Entry {
    const TargetTable* kernels;
    bool (*runs_here)();
};

constexpr Entry entries[] = {
#if defined(APPROXSVM_WITH_AVX512)
    {&kernels_avx512, runs_avx512},
#endif
#if defined(APPROXSVM_WITH_AVX2)
    {&kernels_avx2, runs_avx2},
#endif
#if defined(APPROXSVM_WITH_NEON)
    {&kernels_neon, runs_always},
#endif
#if defined(APPROXSVM_WITH_BASELINE)
    {&kernels_baseline, runs_always},
#endif
};

}  // namespace

const std::vector<const TargetTable*>& runnable_targets() {
    static const std::vector<const TargetTable*> targets = [] {
        std::vector<const TargetTable*> found;
        for (const Entry& entry : entries) {
            if (entry.runs_here()) found.push_back(entry.kernels);
        }
        return found;
    }();
    return targets;
}

const TargetTable& target_named(const std::string& name, const std::string& asked_by) {
    std::string built;
    for (const Entry& entry : entries) {
        if (name == entry.kernels->name) {
            if (entry.runs_here()) return *entry.kernels;
            throw std::runtime_error(asked_by + " asks for target '" + name + "', which this machine cannot run");
        }
        built += std::string(built.empty() ? "" : ", ") + entry.kernels->name;
    }
    throw std::runtime_error(asked_by + " asks for target '" + name + "', which was not built in (" + built + " were)");
}

const TargetTable& selected_target() {
    const char* forced = std::getenv("APPROXSVM_TARGET");
    if (forced != nullptr && *forced != '\0') return target_named(forced, "the environment variable APPROXSVM_TARGET");
    if (runnable_targets().empty()) throw std::runtime_error("this machine can run no target that was built in");
    return *runnable_targets().front();
}

}  // namespace approxsvm::dispatch
