// headers: answers from the C++ headers alone. Requests are read from standard input and replies are written to
// standard output, both in native byte order (native.py is the other end). Every buffer is on the heap and has exactly
// the size that the model states, so that AddressSanitizer finds accesses beyond its end.
#include <approxsvm/approxsvm.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace {

using approxsvm::Evaluation;
using approxsvm::Fault;
using approxsvm::Model;
using approxsvm::Span;
using approxsvm::SparseRows;
using approxsvm::Status;

// --- requests and replies

void read_bytes(void* to, std::size_t n_bytes) {
    if (n_bytes > 0 && std::fread(to, 1, n_bytes, stdin) != n_bytes) std::exit(0);
}
template <class T>
T read_number() {
    T number;
    read_bytes(&number, sizeof number);
    return number;
}
template <class T>
std::vector<T> read_array() {
    std::vector<T> numbers(static_cast<std::size_t>(read_number<std::uint64_t>()));
    read_bytes(numbers.data(), numbers.size() * sizeof(T));
    return numbers;
}
std::string read_text() {
    const std::vector<char> text = read_array<char>();
    return {text.begin(), text.end()};
}

template <class T>
void write_number(T number) {
    std::fwrite(&number, sizeof number, 1, stdout);
}
template <class T>
void write_array(const T* numbers, std::size_t n) {
    write_number<std::uint64_t>(n);
    if (n > 0) std::fwrite(numbers, sizeof(T), n, stdout);
}
void write_status(Status status, std::size_t row = 0) {
    const std::string_view text = approxsvm::message(status);
    write_number<std::uint32_t>(status == Status::ok ? 0 : 1);
    if (status == Status::ok) return;
    write_array(text.data(), text.size());
    write_number<std::uint64_t>(row);
}

// --- a model in memory of exactly the required size

// A buffer of n_bytes at an odd address, where alignment needs the most padding.
class Memory {
  public:
    explicit Memory(std::size_t n_bytes) : n_bytes_(n_bytes) {
        if (posix_memalign(&block_, 64, n_bytes + 1) != 0) std::abort();
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory() { std::free(block_); }
    operator Span<unsigned char>() const { return {static_cast<unsigned char*>(block_) + 1, n_bytes_}; }

  private:
    std::size_t n_bytes_;
    void* block_ = nullptr;
};

struct Opened {
    std::vector<unsigned char> bytes;
    Model model;
    std::unique_ptr<Memory> memory;
};

Status open(Opened& opened, const std::string& path) {
    opened.bytes.clear();
    std::FILE* const file = std::fopen(path.c_str(), "rb");
    if (!file) std::abort();
    std::fseek(file, 0, SEEK_END);
    std::vector<unsigned char> bytes(static_cast<std::size_t>(std::ftell(file)));
    std::rewind(file);
    if (std::fread(bytes.data(), 1, bytes.size(), file) != bytes.size()) std::abort();
    std::fclose(file);
    opened.bytes = std::move(bytes);
    Status status = opened.model.open(opened.bytes);
    if (status != Status::ok) return status;
    opened.memory = std::make_unique<Memory>(opened.model.memory_bytes());
    status = opened.model.prepare(*opened.memory);
    if (status != Status::ok) return status;
    return opened.model.replay(Memory(opened.model.replay_bytes()));
}

void describe(const Model& model) {
    for (const std::size_t n :
         {model.n_features(), model.n_decisions(), model.n_probabilities(), model.n_targets(), model.n_labels()}) {
        write_number<std::uint64_t>(n);
    }
    for (std::size_t k = 0; k <= model.n_labels(); ++k) {  // and one index beyond the last
        char room[approxsvm::label_digits];
        const std::string_view text = approxsvm::text_of(model.label(k), room);
        write_array(text.data(), text.size());
    }
}

// --- answers

enum Answer { labels, certified, values, bounds, probabilities, probability_bounds, n_answers };

struct Asked {
    bool wanted[n_answers];
    approxsvm::Values kind;
    std::size_t n_rows, call_size;  // total rows, and rows per call
};

// The output buffer of one call, and the answers of all calls so far.
template <class T>
struct Buffer {
    std::vector<T> room, all;

    Span<T> of(bool wanted, std::size_t size) {
        room = std::vector<T>(wanted ? size : 0);
        return wanted ? Span<T>(room.empty() ? &none : room.data(), size) : Span<T>();
    }
    void keep() { all.insert(all.end(), room.begin(), room.end()); }
    T none{};
};

// `rows_of(first, last)` returns the rows of a call.
template <class RowsOf>
void answer(const Model& model, const Asked& asked, const RowsOf& rows_of) {
    Buffer<std::uint32_t> positions;
    Buffer<std::uint8_t> proven;
    Buffer<double> numbers[4];
    const std::size_t per_row[] = {model.n_decisions(), model.n_decisions(), model.n_probabilities(),
                                   model.n_probabilities()};
    for (std::size_t first = 0; first == 0 || first < asked.n_rows; first += asked.call_size) {
        const std::size_t n = asked.n_rows - first < asked.call_size ? asked.n_rows - first : asked.call_size;
        const Memory workspace(n < asked.n_rows ? model.workspace_bytes(n) : model.workspace_bytes());
        Evaluation out;
        out.labels = positions.of(asked.wanted[labels], n * model.n_targets());
        out.certified = proven.of(asked.wanted[certified], n * model.n_targets());
        Span<double>* const spans[] = {&out.values, &out.bounds, &out.probabilities, &out.probability_bounds};
        bool labels_alone = asked.wanted[labels] && !asked.wanted[certified];
        for (int k = 0; k < 4; ++k) {
            *spans[k] = numbers[k].of(asked.wanted[values + k], n * per_row[k]);
            labels_alone = labels_alone && !*spans[k];
        }
        Fault fault{};
        const Status status = labels_alone
                                  ? model.predict(rows_of(first, first + n), out.labels, workspace, &fault)
                                  : model.evaluate(rows_of(first, first + n), out, workspace, asked.kind, &fault);
        if (status != Status::ok) return write_status(status, first + fault.row);
        positions.keep();
        proven.keep();
        for (Buffer<double>& each : numbers) each.keep();
    }
    write_status(Status::ok);
    write_array(positions.all.data(), positions.all.size());
    write_array(proven.all.data(), proven.all.size());
    for (Buffer<double>& each : numbers) write_array(each.all.data(), each.all.size());
}

template <class Real>
void answer_dense(const Model& model, const Asked& asked) {
    const std::vector<Real> numbers = read_array<Real>();
    const std::size_t width = model.n_features();
    answer(model, asked, [&](std::size_t first, std::size_t last) {
        return std::vector<Real>(numbers.data() + first * width, numbers.data() + last * width);
    });
}

template <class Real, class Index>
void answer_sparse(const Model& model, const Asked& asked) {
    const std::vector<Real> numbers = read_array<Real>();
    const std::vector<Index> columns = read_array<Index>(), starts = read_array<Index>();
    std::vector<Index> piece;
    answer(model, asked, [&](std::size_t first, std::size_t last) {
        piece = std::vector<Index>(starts.data() + first, starts.data() + last + 1);
        return SparseRows<Real, Index>{numbers, columns, piece};
    });
}

void evaluate(const Model& model) {
    Asked asked{};
    const auto wanted = read_number<std::uint32_t>();
    for (int k = 0; k < n_answers; ++k) asked.wanted[k] = wanted >> k & 1;
    asked.kind = static_cast<approxsvm::Values>(read_number<std::uint32_t>());
    const auto form = read_number<std::uint32_t>();  // digits: bytes per value, then bytes per index (0 for dense rows)
    asked.n_rows = static_cast<std::size_t>(read_number<std::uint64_t>());
    asked.call_size = static_cast<std::size_t>(read_number<std::uint64_t>());
    switch (form) {
        case 80:
            return answer_dense<double>(model, asked);
        case 40:
            return answer_dense<float>(model, asked);
        case 84:
            return answer_sparse<double, std::int32_t>(model, asked);
        case 48:
            return answer_sparse<float, std::int64_t>(model, asked);
        default:
            std::abort();
    }
}

void find_code(const Model& model) {
    const auto column = static_cast<std::size_t>(read_number<std::uint64_t>());
    const bool is_missing = read_number<std::uint32_t>() != 0;
    const std::string text = read_text();
    write_number(model.n_categories(column) == 0 ? 0.0
                 : is_missing                    ? model.missing_code(column)
                                                 : model.category_code(column, text));
    write_number<std::uint64_t>(model.n_categories(column));
    for (std::size_t k = 0; k < model.n_categories(column); ++k) {
        if (model.category_code(column, model.category(column, k)) != static_cast<double>(k)) std::abort();
    }
    if (!model.category(column, model.n_categories(column)).empty()) std::abort();
}

}  // namespace

int main() {
    Opened opened;
    for (;;) {
        switch (read_number<std::uint32_t>()) {
            case 0: {
                const Status status = open(opened, read_text());
                write_status(status);
                if (status == Status::ok) describe(opened.model);
                break;
            }
            case 1:
                evaluate(opened.model);
                break;
            case 2:
                find_code(opened.model);
                break;
            default:
                std::abort();
        }
        std::fflush(stdout);
    }
}
