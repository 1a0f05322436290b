#include "output_file.hpp"

#include <algorithm>
#include <cerrno>
#include <system_error>

#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#define NOMINMAX
#include <fcntl.h>
#include <io.h>
#include <process.h>
#include <sys/stat.h>
#include <windows.h>

#include <filesystem>
#else
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#endif

namespace approxsvm::tools {
namespace {

// --- functions of each system, which set errno on failure

constexpr int standard_output = 1;

#if defined(_WIN32)

std::wstring native(const std::string& path) {
    return std::filesystem::u8path(path).wstring();
}

bool same_file(const std::string& path, const std::string& other) {
    std::error_code error;
    const std::filesystem::path one = std::filesystem::u8path(path), two = std::filesystem::u8path(other);
    return std::filesystem::is_regular_file(one, error) && std::filesystem::equivalent(one, two, error);
}

bool leads_to_standard_output(const std::string&) {
    return false;
}

// The file at a path; it is replaceable if it is regular and writable.
struct Place {
    bool exists = false, is_replaceable = false;

    explicit Place(const std::string& path) {
        std::error_code error;
        const auto type = std::filesystem::symlink_status(std::filesystem::u8path(path), error).type();
        exists = type != std::filesystem::file_type::not_found;
        is_replaceable = type == std::filesystem::file_type::regular && ::_waccess(native(path).c_str(), 2) == 0;
    }
    void give_mode_to(int) const {}  // files inherit the folder's permissions
};

int create(const std::string& path) {
    return ::_wopen(native(path).c_str(), _O_WRONLY | _O_CREAT | _O_EXCL | _O_BINARY | _O_NOINHERIT,
                    _S_IREAD | _S_IWRITE);
}
int open_to_write(const std::string& path) {
    return ::_wopen(native(path).c_str(), _O_WRONLY | _O_CREAT | _O_TRUNC | _O_BINARY | _O_NOINHERIT,
                    _S_IREAD | _S_IWRITE);
}
std::ptrdiff_t write_some(int fd, const char* bytes, std::size_t n) {
    if (fd == standard_output) ::_setmode(fd, _O_BINARY);
    return ::_write(fd, bytes, static_cast<unsigned>(n));
}
bool close_file(int fd) {
    return ::_close(fd) == 0;
}
bool rename_over(const std::string& from, const std::string& to) {
    if (::MoveFileExW(native(from).c_str(), native(to).c_str(), MOVEFILE_REPLACE_EXISTING)) return true;
    errno = EACCES;
    return false;
}
void remove_file(const std::string& path) {
    ::_wunlink(native(path).c_str());
}
int process_number() {
    return ::_getpid();
}

#else

bool same(const struct ::stat& one, const struct ::stat& other) {
    return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

bool same_file(const std::string& path, const std::string& other) {
    struct ::stat one, two;
    return ::stat(path.c_str(), &one) == 0 && ::stat(other.c_str(), &two) == 0 && S_ISREG(one.st_mode) &&
           same(one, two);
}

bool leads_to_standard_output(const std::string& path) {
    struct ::stat there, output;
    return ::stat(path.c_str(), &there) == 0 && ::fstat(standard_output, &output) == 0 && same(there, output);
}

// The file at a path; it is replaceable if a new file with the same name and mode is equivalent.
struct Place {
    bool exists, is_replaceable;

    explicit Place(const std::string& path) : exists(::lstat(path.c_str(), &status_) == 0) {
        is_replaceable = exists && S_ISREG(status_.st_mode) && status_.st_nlink == 1 && status_.st_uid == ::geteuid() &&
                         ::access(path.c_str(), W_OK) == 0;
    }
    void give_mode_to(int fd) const {
        if (exists) (void)::fchmod(fd, status_.st_mode & 0777);
    }

  private:
    struct ::stat status_;
};

int create(const std::string& path) {
    return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}
int open_to_write(const std::string& path) {
    return ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
}
std::ptrdiff_t write_some(int fd, const char* bytes, std::size_t n) {
    return ::write(fd, bytes, n);
}
bool close_file(int fd) {
    return ::close(fd) == 0;
}
bool rename_over(const std::string& from, const std::string& to) {
    return std::rename(from.c_str(), to.c_str()) == 0;
}
void remove_file(const std::string& path) {
    ::unlink(path.c_str());
}
int process_number() {
    return ::getpid();
}

#endif

// --- functions of all systems

[[noreturn]] void throw_system_error(const std::string& path) {
    throw std::system_error(errno, std::generic_category(), path);
}

void write_all(int fd, std::string_view bytes, const std::string& path) {
    constexpr std::size_t max_write_bytes = std::size_t{1} << 30;  // some systems refuse to write more in one call
    while (!bytes.empty()) {
        const std::ptrdiff_t n_written = write_some(fd, bytes.data(), std::min(bytes.size(), max_write_bytes));
        if (n_written >= 0) {
            bytes.remove_prefix(static_cast<std::size_t>(n_written));
        } else if (errno != EINTR) {
            throw_system_error(path);
        }
    }
}

}  // namespace

void write_to_standard_output(std::string_view bytes) {
    write_all(standard_output, bytes, "standard output");
}

bool is_same_file(const std::string& path, const std::string& other) {
    return same_file(path, other);
}

OutputFile::OutputFile(const std::string& path) : path_(path) {
    if (leads_to_standard_output(path)) {
        fd_ = standard_output;
        is_shared_ = true;
        return;
    }
    const Place place(path);
    if (!place.exists || place.is_replaceable) {
        temporary_path_ = path + "." + std::to_string(process_number()) + ".tmp";
        fd_ = create(temporary_path_);
    }
    if (fd_ >= 0) {
        place.give_mode_to(fd_);  // the new file replaces the old one and takes its mode
        return;
    }
    temporary_path_.clear();  // for example, for a writable file in a read-only directory
    fd_ = open_to_write(path);
    if (fd_ < 0) throw_system_error(path);
}

OutputFile::~OutputFile() {
    if (fd_ >= 0 && !is_shared_) close_file(fd_);
    if (!temporary_path_.empty()) remove_file(temporary_path_);
}

void OutputFile::commit() {
    flush();
    if (!is_shared_) {
        const int fd = fd_;
        fd_ = -1;
        if (!close_file(fd)) throw_system_error(path_);
    }
    if (temporary_path_.empty()) return;
    if (!rename_over(temporary_path_, path_)) throw_system_error(path_);
    temporary_path_.clear();
}

void OutputFile::flush() {
    write_all(fd_, buffer_, path_);
    buffer_.clear();
}

}  // namespace approxsvm::tools
