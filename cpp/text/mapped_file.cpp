#include "mapped_file.hpp"

#include <cerrno>
#include <system_error>

#if defined(__unix__) || defined(__APPLE__)
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#else
#include <filesystem>
#include <fstream>
#endif

namespace approxsvm::text {
namespace {

[[noreturn]] void throw_system_error(int error, const std::string& path) {
    throw std::system_error(error, std::generic_category(), path);
}

}  // namespace

#if defined(__unix__) || defined(__APPLE__)

namespace {

class FileDescriptor {
  public:
    explicit FileDescriptor(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
        if (fd_ < 0) throw_system_error(errno, path);
    }
    FileDescriptor(const FileDescriptor&) = delete;
    FileDescriptor& operator=(const FileDescriptor&) = delete;
    ~FileDescriptor() { ::close(fd_); }

    int get() const { return fd_; }

  private:
    int fd_;
};

std::string read_to_end(const FileDescriptor& file, const std::string& path) {
    constexpr std::size_t chunk_bytes = std::size_t{1} << 16;
    std::string bytes;
    for (;;) {
        const std::size_t n_before = bytes.size();
        bytes.resize(n_before + chunk_bytes);
        const ::ssize_t n_read = ::read(file.get(), &bytes[n_before], chunk_bytes);
        bytes.resize(n_before + (n_read > 0 ? static_cast<std::size_t>(n_read) : 0));
        if (n_read == 0) return bytes;
        if (n_read < 0 && errno != EINTR) throw_system_error(errno, path);
    }
}

}  // namespace

MappedFile::MappedFile(const std::string& path) {
    const FileDescriptor file(path);
    struct ::stat status;
    if (::fstat(file.get(), &status) != 0) throw_system_error(errno, path);
    // The system reports files in /proc as regular and empty, although they are neither, so files of size 0 are read
    // instead of mapped.
    if (S_ISREG(status.st_mode) && status.st_size > 0) {
        const std::size_t n_bytes = static_cast<std::size_t>(status.st_size);
        void* const mapping = ::mmap(nullptr, n_bytes, PROT_READ, MAP_PRIVATE, file.get(), 0);
        if (mapping != MAP_FAILED) {
            ::madvise(mapping, n_bytes, MADV_SEQUENTIAL);
            mapping_ = static_cast<const char*>(mapping);
            n_mapped_bytes_ = n_bytes;
            return;
        }
    }
    read_ = read_to_end(file, path);
}

MappedFile::~MappedFile() {
    if (mapping_ != nullptr) ::munmap(const_cast<char*>(mapping_), n_mapped_bytes_);
}

#else

MappedFile::MappedFile(const std::string& path) {
    errno = 0;
    std::ifstream file(std::filesystem::u8path(path), std::ios::binary);
    if (!file) throw_system_error(errno != 0 ? errno : ENOENT, path);
    char chunk[1 << 16];
    while (file.read(chunk, sizeof chunk) || file.gcount() > 0) {
        read_.append(chunk, static_cast<std::size_t>(file.gcount()));
    }
    if (file.bad()) throw_system_error(errno != 0 ? errno : EIO, path);
}

MappedFile::~MappedFile() = default;

#endif

}  // namespace approxsvm::text
