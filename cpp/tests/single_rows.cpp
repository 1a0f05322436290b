// Labels of single rows, and the work for each row: single_rows MODEL.asvm ROWS, where the file ROWS contains
// consecutive float64 rows. Prints the index of each row's label and the number of multiply-adds.
static double n_counted = 0.0;
#define APPROXSVM_COUNT_WORK(n) (n_counted += (n))

#include <approxsvm/approxsvm.hpp>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <vector>

namespace {

std::vector<char> content(const char* path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

int main(int argc, char** argv) {
    using namespace approxsvm;
    if (argc != 3) return 1;
    const std::vector<char> artifact = content(argv[1]), rows = content(argv[2]);
    ModelOf<rbf, one_vs_one, subspaces, few_values, scalers> model;
    if (model.open({reinterpret_cast<const unsigned char*>(artifact.data()), artifact.size()}) != Status::ok) return 2;
    std::vector<unsigned char> memory(model.memory_bytes());
    if (model.prepare(memory) != Status::ok) return 3;
    std::vector<unsigned char> workspace(model.workspace_bytes(1));
    const std::size_t d = model.n_features();
    const double* const x = reinterpret_cast<const double*>(rows.data());
    for (std::size_t i = 0; i < rows.size() / sizeof(double) / d; ++i) {
        std::uint32_t label;
        n_counted = 0.0;
        if (model.predict(Span<const double>(x + i * d, d), {&label, 1}, workspace) != Status::ok) return 4;
        std::printf("%u %.0f\n", static_cast<unsigned>(label), n_counted);
    }
}
