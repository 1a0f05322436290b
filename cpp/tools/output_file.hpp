// The file that predictions go to: complete or not there at all, and never in the way of the file that they
// come from. POSIX.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <system_error>

namespace approxsvm::tools {

[[noreturn]] inline void throw_system_error(const std::string& path) {
    throw std::system_error(errno, std::generic_category(), path);
}

/// Writes all bytes or throws; `path` names the file in the message.
inline void write_all(int fd, std::string_view bytes, const std::string& path) {
    constexpr std::size_t max_write_bytes = std::size_t{1} << 30;  // some systems refuse more at once
    while (!bytes.empty()) {
        const ::ssize_t n_written = ::write(fd, bytes.data(), std::min(bytes.size(), max_write_bytes));
        if (n_written >= 0) {
            bytes.remove_prefix(static_cast<std::size_t>(n_written));
        } else if (errno != EINTR) {
            throw_system_error(path);
        }
    }
}

/// A file that does not exist yet, or a regular file of ours, is written under another name in the same
/// directory and renamed by commit(). Everything else is written to as it is: devices, pipes, files that
/// others own or that have a second name, and symbolic links, because somebody may hold open what /dev/fd/3
/// leads to. A path that leads to the standard output shares its descriptor, so that what is printed later
/// comes behind.
class OutputFile {
  public:
    explicit OutputFile(const std::string& path) : path_(path) {
        struct ::stat there, standard_output;
        if (::stat(path.c_str(), &there) == 0 && ::fstat(STDOUT_FILENO, &standard_output) == 0 &&
            there.st_dev == standard_output.st_dev && there.st_ino == standard_output.st_ino) {
            fd_ = STDOUT_FILENO;
            return;
        }
        const bool exists = ::lstat(path.c_str(), &there) == 0;
        if (!exists || is_replaceable(there)) open_temporary();
        if (fd_ < 0) {  // also in a directory where we may change files but not make them
            fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
            if (fd_ < 0) throw_system_error(path);
        } else if (exists) {
            (void)::fchmod(fd_,
                           there.st_mode & 0777);  // the new file takes the place and mode of the old one
        }
    }
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;
    ~OutputFile() {
        if (fd_ >= 0 && fd_ != STDOUT_FILENO) ::close(fd_);
        if (!temporary_path_.empty()) ::unlink(temporary_path_.c_str());
    }

    /// Collects small pieces: a system call takes as long as copying several kilobytes.
    void write(std::string_view bytes) {
        buffer_ += bytes;
        if (buffer_.size() >= flush_bytes) flush();
    }

    /// Only after this the file is there, whole.
    void commit() {
        flush();
        if (fd_ != STDOUT_FILENO) {
            const int fd = fd_;
            fd_ = -1;
            if (::close(fd) != 0) throw_system_error(path_);
        }
        if (temporary_path_.empty()) return;
        if (std::rename(temporary_path_.c_str(), path_.c_str()) != 0) throw_system_error(path_);
        temporary_path_.clear();
    }

  private:
    static constexpr std::size_t flush_bytes = std::size_t{1} << 18;

    /// Whether nobody can tell a new file of the same name and mode from this one.
    bool is_replaceable(const struct ::stat& file) const {
        return S_ISREG(file.st_mode) && file.st_nlink == 1 && file.st_uid == ::geteuid() &&
               ::access(path_.c_str(), W_OK) == 0;
    }

    void open_temporary() {
        temporary_path_ = path_ + "." + std::to_string(::getpid()) + ".tmp";
        fd_ = ::open(temporary_path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd_ < 0) temporary_path_.clear();
    }

    void flush() {
        write_all(fd_, buffer_, path_);
        buffer_.clear();
    }

    std::string path_;
    std::string temporary_path_;
    std::string buffer_;
    int fd_ = -1;
};

}  // namespace approxsvm::tools
