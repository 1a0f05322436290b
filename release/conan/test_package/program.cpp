#include <approxsvm/approxsvm.hpp>

int main() {
    approxsvm::ModelOf<approxsvm::rbf> model;
    return model.open({}) == approxsvm::Status::ok ? 1 : 0;  // no bytes are no artifact
}
