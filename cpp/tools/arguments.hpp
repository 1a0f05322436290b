// The command line of approxsvm-predict.
#pragma once

#include <charconv>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace approxsvm::tools {

inline constexpr char usage[] =
    "Usage: approxsvm-predict [options] test_file model_file output_file\n"
    "options:\n"
    "-b probability_estimates : whether to predict probability estimates, 0 or 1 (default 0)\n"
    "-q : quiet mode (no closing lines)\n"
    "-j threads : number of threads (default: as many as the machine runs at once)\n"
    "--version, --help : print it and exit\n"
    "test_file is LIBSVM text, output_file gets one prediction a line. model_file is what svm-train wrote, and gives\n"
    "svm-predict's answers, or an artifact (.asvm), which is faster.\n"
    "The environment variable APPROXSVM_TARGET forces an instruction set.\n";

/// A fault in the arguments, reported with the usage.
struct UsageError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

enum class Action { predict, show_usage, show_version };

struct Arguments {
    Action action = Action::predict;
    bool probabilities = false;
    bool quiet = false;
    std::optional<std::size_t> n_threads;
    std::string test_path;
    std::string model_path;
    std::string output_path;
};

class ArgumentParser {
  public:
    explicit ArgumentParser(const std::vector<std::string>& words) : words_(words) {}

    Arguments parse() {
        for (; i_ < words_.size() && words_[i_].substr(0, 1) == "-"; ++i_) {
            take_option(words_[i_]);
            if (result_.action != Action::predict) return result_;
        }
        const std::size_t n_names = words_.size() - i_;
        if (n_names != 3) {
            throw UsageError("three file names are needed, " + std::to_string(n_names) + " given");
        }
        result_.test_path = words_[i_];
        result_.model_path = words_[i_ + 1];
        result_.output_path = words_[i_ + 2];
        return result_;
    }

  private:
    void take_option(std::string_view option) {
        constexpr std::size_t max_threads = 1024;
        if (option == "--help") {
            result_.action = Action::show_usage;
        } else if (option == "--version") {
            result_.action = Action::show_version;
        } else if (option == "-q") {
            result_.quiet = true;
        } else if (option == "-b") {
            result_.probabilities = take_integer(option, 0, 1) == 1;
        } else if (option == "-j") {
            result_.n_threads = take_integer(option, 1, max_threads);
        } else {
            throw UsageError("unknown option '" + std::string(option) + "'");
        }
    }

    std::string_view take_value(std::string_view option) {
        if (++i_ == words_.size()) throw UsageError("option " + std::string(option) + " needs a value");
        return words_[i_];
    }

    std::size_t take_integer(std::string_view option, std::size_t min, std::size_t max) {
        const std::string_view value = take_value(option);
        std::size_t number = 0;
        const char* const last = value.data() + value.size();
        const auto [end, error] = std::from_chars(value.data(), last, number);
        if (error == std::errc() && end == last && number >= min && number <= max) return number;
        throw UsageError("option " + std::string(option) + " takes a number from " + std::to_string(min) + " to " +
                         std::to_string(max) + ", not '" + std::string(value) + "'");
    }

    const std::vector<std::string> words_;
    std::size_t i_ = 0;
    Arguments result_;
};

}  // namespace approxsvm::tools
