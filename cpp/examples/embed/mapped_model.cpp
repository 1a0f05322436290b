#include "mapped_model.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using approxsvm::Status;

MappedModel::MappedModel(const char* path) {
    const int file = open(path, O_RDONLY);
    if (file < 0) return;
    struct stat info;
    if (fstat(file, &info) == 0 && info.st_size > 0) {
        n_bytes_ = static_cast<std::size_t>(info.st_size);
        void* mapping = mmap(nullptr, n_bytes_, PROT_READ, MAP_PRIVATE, file, 0);
        if (mapping != MAP_FAILED) {
            bytes_ = mapping;
            status_ = prepare();
        }
    }
    close(file);
}

Status MappedModel::prepare() {
    Status status = model_.open({static_cast<const unsigned char*>(bytes_), n_bytes_});
    if (status != Status::ok) return status;
    memory_.resize(model_.memory_bytes());
    status = model_.prepare(memory_);
    if (status != Status::ok) return status;
    std::vector<unsigned char> workspace(model_.replay_bytes());
    return model_.replay(workspace);
}

MappedModel::~MappedModel() {
    if (bytes_ != nullptr) munmap(bytes_, n_bytes_);
}
