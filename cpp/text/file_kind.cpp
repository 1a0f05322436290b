#include "file_kind.hpp"

#include <algorithm>
#include <iterator>

#include "feature_row.hpp"
#include "mapped_file.hpp"
#include "number.hpp"

namespace approxsvm::text {
namespace {

using namespace std::string_view_literals;

constexpr std::size_t max_looked_at = std::size_t{1} << 16;

constexpr std::string_view decompress = "decompress it first";
constexpr std::string_view needs_trust = "approxsvm convert-model --trust reads it";

constexpr std::string_view needs_converting = "approxsvm convert-model reads it";

constexpr std::string_view comments =
    "; LIBSVM's rows have no comments: remove them (sed -i 's/[ \\t]*#.*//; /^$/d' FILE)";

constexpr std::string_view needs_compiling = "approxsvm convert-model compiles it";

constexpr std::string_view needs_write_libsvm = "in R, write the model with write_libsvm (docs/howto/r.md)";

constexpr std::string_view needs_training =
    "it is not read: train the model with LIBSVM, or pass its numbers to approxsvm.KernelModel";

constexpr std::string_view needs_range = "approxsvm convert-model --range takes it";

struct Magic {
    std::string_view bytes;
    FileKind kind;
};

constexpr Magic magics[] = {
    {"\x89"
     "ASVM\r\n\x1a"sv,
     {"an approxsvm artifact", ""}},
    {"svm_type "sv, {libsvm_model, needs_compiling}},
    {"solver_type "sv, {"a LIBLINEAR model", ""}},
    {"SVM-light Version "sv, {"an SVM-light model", needs_training}},
    {"tree\nversion="sv, {"a LightGBM model", ""}},
    {"x\n"sv, {"a range file of svm-scale", needs_range}},
    {"y\n"sv, {"a range file of svm-scale", needs_range}},
    {"version https://git-lfs"sv, {"a pointer of Git LFS", "git lfs pull replaces it with the file"}},
    {"\x1f\x8b"sv, {"a file compressed by gzip", decompress}},
    {"BZh"sv, {"a file compressed by bzip2", decompress}},
    {"\xfd"
     "7zXZ\0"sv,
     {"a file compressed by xz", decompress}},
    {"\x28\xb5\x2f\xfd"sv, {"a file compressed by zstd", decompress}},
    {"\x93NUMPY"sv, {"a NumPy array (.npy)", ""}},
    {"\x89HDF\r\n\x1a\n"sv, {"an HDF5 file", ""}},
    {"MATLAB "sv, {"a MATLAB file", ""}},
    {"PAR1"sv, {"a Parquet file", ""}},
    {"ARROW1"sv, {"an Arrow file", ""}},
    {"SQLite format 3\0"sv, {"an SQLite database", ""}},
    {"\x89PNG\r\n"sv, {"a PNG image", ""}},
    {"\xff\xd8\xff"sv, {"a JPEG image", ""}},
    {"GIF8"sv, {"a GIF image", ""}},
    {"II*\0"sv, {"a TIFF image", ""}},
    {"MM\0*"sv, {"a TIFF image", ""}},
    {"II+\0"sv, {"a TIFF image", ""}},
    {"MM\0+"sv, {"a TIFF image", ""}},
    {"\0\0\0\x0cjP  "sv, {"a JPEG 2000 image", ""}},
    {"\xff\x4f\xff\x51"sv, {"a JPEG 2000 image", ""}},
    {"EHFA_HEADER_TAG"sv, {"an ERDAS image", ""}},
    {"CDF\x01"sv, {"a NetCDF file", ""}},
    {"CDF\x02"sv, {"a NetCDF file", ""}},
    {"X\n\0\0"sv, {"an R object (.rds)", needs_write_libsvm}},
    {"RDX2\n"sv, {"R data (.rda)", needs_write_libsvm}},
    {"RDX3\n"sv, {"R data (.rda)", needs_write_libsvm}},
    {"%PDF-"sv, {"a PDF file", ""}},
    {"\x7f"
     "ELF"sv,
     {"a program", ""}},
    {"\xff\xfe"sv, {"text in UTF-16", "save it as UTF-8"}},
    {"\xfe\xff"sv, {"text in UTF-16", "save it as UTF-8"}},
};

bool starts_with(std::string_view text, std::string_view prefix) {
    return text.substr(0, prefix.size()) == prefix;
}

bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

/// A zip file ends with its central directory, which lists all file names.
FileKind kind_of_zip(std::string_view bytes) {
    const std::string_view names = bytes.substr(bytes.size() - std::min(bytes.size(), max_looked_at));
    // A skops file stores its arrays as .npy files, so test for skops first.
    if (contains(names, "schema.json")) return {"a skops file", needs_converting};
    if (contains(names, ".npy")) return {"a NumPy archive (.npz)", ""};
    return {"a zip archive", ""};
}

/// Recognises a protobuf message that begins with a version, as in ONNX and Core ML. In ONNX, the producer's name or
/// the graph follows.
FileKind kind_of_protobuf(std::string_view bytes) {
    const std::size_t last = std::min<std::size_t>(bytes.size(), 5);
    const std::string_view tags = bytes.substr(2, last - 2);
    const bool has_producer = tags.size() == 3 && tags[0] == 0x12 && tags[2] > ' ' && tags[2] <= '~';
    if (has_producer || tags[0] == 0x3a || tags[0] == 0x42) return {"an ONNX model", needs_converting};
    if (tags[0] == 0x12) return {"a protobuf file, as Core ML writes", ""};
    return {};
}

FileKind kind_of_markup(std::string_view text) {
    if (contains(text, "<opencv_storage")) return {"an OpenCV file (XML)", needs_converting};
    if (contains(text, "<VRTDataset")) return {"a GDAL virtual raster (VRT)", ""};
    if (contains(text, "<PMML")) return {"a PMML file", needs_converting};
    if (contains(text, "<html") || contains(text, "<HTML")) return {"an HTML page", ""};
    return {"an XML file", ""};
}

/// Returns true if a text begins with "@relation", apart from comments.
bool is_arff(std::string_view text) {
    while (!text.empty()) {
        const std::size_t first = std::min(text.find_first_not_of(" \t\r\n"), text.size());
        text = text.substr(first);
        if (starts_with(text, "@relation") || starts_with(text, "@RELATION")) return true;
        if (!starts_with(text, "%")) return false;
        text = text.substr(std::min(text.find('\n'), text.size()));
    }
    return false;
}

FileKind kind_of_text(std::string_view text) {
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos) return {};
    if (text[first] == '{' || text[first] == '[') {
        if (contains(text, "\"supportVectors\"")) return {"a node-svm model (JSON)", needs_training};
        if (contains(text, "\"svmType\"")) return {"an OpenCV file (JSON)", needs_converting};
        if (contains(text, "\"model_dict\"")) return {"a VMAF model (JSON)", needs_converting};
        if (!contains(text, "svm_type ")) return {"a JSON file", ""};
        return {"a JSON file with a LIBSVM model in it", "save that text as a file of its own"};
    }
    if (text[first] == '<') return kind_of_markup(text);
    if (is_arff(text)) return {"an ARFF file", ""};
    if (starts_with(text, "%YAML") || starts_with(text, "---")) {
        for (const std::string_view sign : {"opencv"sv, "svmType:"sv, "svm_type:"sv}) {
            if (contains(text, sign)) return {"an OpenCV file (YAML)", needs_converting};
        }
        return {"a YAML file", ""};
    }
    double label = 0.0;
    const char* const last = text.data() + text.size();
    const char* const end = parse_real(text.data() + first, last, label);
    const char* const line_last = end == nullptr ? nullptr : std::find(end, last, '\n');
    if (end == nullptr || end == line_last || !is_blank(*end)) return {};
    if (contains({end, static_cast<std::size_t>(line_last - end)}, ":")) return {libsvm_data, ""};
    return {};
}

}  // namespace

FileKind kind_of(std::string_view bytes) {
    const bool is_marked = bytes.size() != without_byte_order_mark(bytes).size();
    bytes = without_byte_order_mark(bytes);
    const std::string_view head = bytes.substr(0, max_looked_at);
    if (head.empty()) return {"an empty file", ""};
    if (is_marked && starts_with(head, magics[0].bytes)) {
        return marked_artifact;
    }
    const auto* const found = std::find_if(std::begin(magics), std::end(magics),
                                           [&](const Magic& magic) { return starts_with(head, magic.bytes); });
    if (found != std::end(magics)) return found->kind;
    if (starts_with(head, "PK\x03\x04")) return kind_of_zip(bytes);
    if (head.size() > 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5) return {"a pickle", needs_trust};
    if (head.size() > 2 && head[0] == 'x' && contains("\x01\x5e\x9c\xda"sv, head.substr(1, 1))) {
        return {"a file compressed by zlib, as joblib writes", needs_trust};
    }
    if (head.size() > 5 && head[0] == 0x08 && head[1] > 0 && head[1] < 32 && !kind_of_protobuf(head).name.empty()) {
        return kind_of_protobuf(head);
    }
    if (contains(head, "\0"sv)) return {"a binary file of an unknown kind", ""};
    return kind_of_text(head);
}

std::string described(const FileKind& kind, std::string_view expected) {
    std::string text = "this is " + std::string(kind.name);
    if (!expected.empty()) text += ", not " + std::string(expected);
    const bool is_in_place_of_data = kind.name == libsvm_model && expected == libsvm_data;  // swapped arguments
    if (!kind.advice.empty() && !is_in_place_of_data) text += "; " + std::string(kind.advice);
    return text;
}

TextError explained(const TextError& error, std::string_view bytes, std::string_view expected) {
    const std::size_t n_blank = std::min(bytes.find_first_not_of(" \t\r\n"), bytes.size());
    const auto n_blank_lines = static_cast<std::size_t>(std::count(bytes.data(), bytes.data() + n_blank, '\n'));
    const FileKind kind = error.line <= n_blank_lines + 1 ? kind_of(bytes) : FileKind();
    if (kind.name.empty() || kind.name == expected) {
        const bool is_at_comment = contains(error.what(), "'#");  // the token quoted in the error message
        return is_at_comment ? TextError(error.line, error.what() + std::string(comments)) : error;
    }
    return {0, described(kind, expected)};
}

}  // namespace approxsvm::text
