// The output file, which is either complete or absent.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace approxsvm::tools {

/// Writes all bytes or throws std::system_error.
void write_to_standard_output(std::string_view bytes);

/// Returns true if two UTF-8 paths lead to the same regular file, even under different names.
bool is_same_file(const std::string& path, const std::string& other);

/// A new file, or a regular file owned by this user, is written under another name in the same directory and renamed by
/// commit(). All others are written directly: devices, pipes, files that have another owner or a second name, and
/// symbolic links (another process may have opened the target of a link such as /dev/fd/3). If the path leads to
/// standard output, the file shares the descriptor of standard output, so that later output follows the file's.
class OutputFile {
  public:
    /// Opens the file at a UTF-8 path. All functions throw std::system_error, whose message contains the path.
    explicit OutputFile(const std::string& path);
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;
    ~OutputFile();

    /// Buffers short strings, because a system call takes as long as copying several kilobytes.
    void write(std::string_view bytes) {
        buffer_ += bytes;
        if (buffer_.size() >= flush_bytes) flush();
    }

    /// Completes the file and makes it visible under its name.
    void commit();

  private:
    static constexpr std::size_t flush_bytes = std::size_t{1} << 18;

    void flush();

    std::string path_;
    std::string temporary_path_;
    std::string buffer_;
    int fd_ = -1;
    /// True if fd_ is the descriptor of standard output. Its number does not show this, because the system reuses the
    /// numbers of closed descriptors.
    bool is_shared_ = false;
};

}  // namespace approxsvm::tools
