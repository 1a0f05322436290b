#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace approxsvm::text {

inline std::string_view without_byte_order_mark(std::string_view text) {
    constexpr std::string_view mark = "\xEF\xBB\xBF";
    return text.substr(text.substr(0, mark.size()) == mark ? mark.size() : 0);
}

/// Read-only bytes of a file, without its UTF-8 byte order mark, valid while the object lives. Regular files are mapped
/// into memory if the system supports it; others, such as pipes, are read. A mapped file must not shrink while the
/// object lives.
class MappedFile {
  public:
    /// Opens a file whose path is in UTF-8. If it cannot be opened or read, throws std::system_error, whose message
    /// contains the path.
    explicit MappedFile(const std::string& path);
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;
    ~MappedFile();

    std::string_view bytes() const {
        return without_byte_order_mark(mapping_ != nullptr ? std::string_view(mapping_, n_mapped_bytes_) : read_);
    }

  private:
    const char* mapping_ = nullptr;
    std::size_t n_mapped_bytes_ = 0;
    std::string read_;
};

}  // namespace approxsvm::text
