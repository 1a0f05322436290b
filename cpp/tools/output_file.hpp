// The file that predictions go to: complete or not there at all.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace approxsvm::tools {

/// Writes all bytes or throws std::system_error.
void write_to_standard_output(std::string_view bytes);

/// Whether both paths lead to one regular file, under whatever names. Paths are UTF-8.
bool is_same_file(const std::string& path, const std::string& other);

/// A file that does not exist yet, or a regular file of ours, is written under another name in the same
/// directory and renamed by commit(). Everything else is written to as it is: devices, pipes, files that
/// others own or that have a second name, and symbolic links, because somebody may hold open what /dev/fd/3
/// leads to. A path that leads to the standard output shares its descriptor, so that what is printed later
/// comes behind.
class OutputFile {
  public:
    /// Paths are UTF-8. Throws std::system_error, naming the path, as everything here does.
    explicit OutputFile(const std::string& path);
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;
    ~OutputFile();

    /// Collects small pieces: a system call takes as long as copying several kilobytes.
    void write(std::string_view bytes) {
        buffer_ += bytes;
        if (buffer_.size() >= flush_bytes) flush();
    }

    /// Only after this the file is there, whole.
    void commit();

  private:
    static constexpr std::size_t flush_bytes = std::size_t{1} << 18;

    void flush();

    std::string path_;
    std::string temporary_path_;
    std::string buffer_;
    int fd_ = -1;
};

}  // namespace approxsvm::tools
