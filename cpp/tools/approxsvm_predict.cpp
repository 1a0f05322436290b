// approxsvm-predict: svm-predict, faster: tens of times with the same model file and the same output file, byte for
// byte; hundreds of times with a compiled model, which is why nothing here may be slow to start.
#include <charconv>
#include <cstdio>
#include <new>
#include <optional>

#include "loaded_model.hpp"
#include "mapped_file.hpp"
#include "output_file.hpp"
#include "predict_text.hpp"

namespace approxsvm::tools {
namespace {

constexpr char usage[] =
    "Usage: approxsvm-predict [options] test_file model_file output_file\n"
    "options:\n"
    "-b probability_estimates : whether to predict probability estimates, 0 or 1 (default 0);\n"
    "    only 0 is supported yet\n"
    "-q : quiet mode (no closing lines)\n"
    "-j threads : number of threads (default: as many as the machine runs at once)\n"
    "--version, --help : say so and exit\n"
    "test_file is LIBSVM text, output_file gets one prediction a line. model_file is what svm-train wrote (RBF "
    "kernel;\n"
    "two classes, one-class or regression) and gives svm-predict's answers, or an artifact (.asvm), which is faster.\n"
    "The environment variable APPROXSVM_TARGET forces an instruction set.\n";

/// What is wrong with the arguments: shown with the usage.
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

std::size_t integer_option(std::string_view option, std::string_view value, std::size_t min, std::size_t max) {
    std::size_t number = 0;
    const char* const last = value.data() + value.size();
    const auto [end, error] = std::from_chars(value.data(), last, number);
    if (error == std::errc() && end == last && number >= min && number <= max) return number;
    throw UsageError("option " + std::string(option) + " takes a number from " + std::to_string(min) + " to " +
                     std::to_string(max) + ", not '" + std::string(value) + "'");
}

Arguments parse_arguments(int argc, char** argv) {
    constexpr std::size_t max_threads = 1024;
    Arguments arguments;
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; ++i) {
        const std::string_view option = argv[i];
        if (option == "--help" || option == "--version") {
            arguments.action = option == "--help" ? Action::show_usage : Action::show_version;
            return arguments;
        }
        if (option == "-q") {
            arguments.quiet = true;
            continue;
        }
        if (option != "-b" && option != "-j") {
            throw UsageError("unknown option '" + std::string(option) + "'");
        }
        if (++i == argc) throw UsageError("option " + std::string(option) + " needs a value");
        if (option == "-b") arguments.probabilities = integer_option(option, argv[i], 0, 1) == 1;
        if (option == "-j") arguments.n_threads = integer_option(option, argv[i], 1, max_threads);
    }
    if (argc - i != 3) {
        throw UsageError("three file names are needed, " + std::to_string(argc - i) + " given");
    }
    arguments.test_path = argv[i];
    arguments.model_path = argv[i + 1];
    arguments.output_path = argv[i + 2];
    return arguments;
}

std::size_t default_threads() {
    return std::max(1u, std::thread::hardware_concurrency());  // 0 when the system does not tell
}

/// As printf's "%g".
std::string short_number(double value) {
    char text[32];
    return std::string(text, static_cast<std::size_t>(std::snprintf(text, sizeof text, "%g", value)));
}

// Without rows this is 0 / 0 and prints what svm-predict prints: NaN.
std::string classification_summary(const std::vector<ChunkResult>& results) {
    std::size_t n_correct = 0, n_rows = 0;
    for (const ChunkResult& result : results) {
        n_correct += result.n_correct;
        n_rows += result.n_rows;
    }
    const double share = static_cast<double>(n_correct) / static_cast<double>(n_rows);
    return "Accuracy = " + short_number(share * 100.0) + "% (" + std::to_string(n_correct) + "/" +
           std::to_string(n_rows) + ") (classification)\n";
}

// The sums, their order and the two formulas are svm-predict's, so that the digits are too.
std::string regression_summary(const std::vector<ChunkResult>& results) {
    double n = 0.0, sq_error = 0.0;
    double sum_p = 0.0, sum_t = 0.0, sum_pp = 0.0, sum_tt = 0.0, sum_pt = 0.0;
    for (const ChunkResult& result : results) {
        for (std::size_t i = 0; i < result.n_rows; ++i) {
            const double p = result.predictions[i], t = result.targets[i];
            sq_error += (p - t) * (p - t);
            sum_p += p;
            sum_t += t;
            sum_pp += p * p;
            sum_tt += t * t;
            sum_pt += p * t;
        }
        n += static_cast<double>(result.n_rows);
    }
    const double covariance = n * sum_pt - sum_p * sum_t;
    const double variances = (n * sum_pp - sum_p * sum_p) * (n * sum_tt - sum_t * sum_t);
    const double squared_correlation = covariance * covariance / variances;
    return "Mean squared error = " + short_number(sq_error / n) + " (regression)\n" +
           "Squared correlation coefficient = " + short_number(squared_correlation) + " (regression)\n";
}

/// Labels that are texts cannot be compared with the numbers of a data file: no closing line.
std::string summary(const ModelView& model, const std::vector<ChunkResult>& results) {
    if (model.task == Task::regression) return regression_summary(results);
    return model.label_kind == LabelKind::text ? std::string() : classification_summary(results);
}

const char* no_probabilities(const LoadedModel& model) {
    return model.is_artifact() ? "-b 1 needs probabilities, and artifacts hold none yet"
                               : "-b 1, probabilities, is not supported yet";
}

void predict(const Arguments& arguments) {
    const LoadedModel model(arguments.model_path);
    if (arguments.probabilities) {
        throw std::runtime_error(arguments.model_path + ": " + no_probabilities(model));
    }

    const text::MappedFile data(arguments.test_path);
    std::vector<ChunkResult> results;
    try {
        const std::size_t n_threads = arguments.n_threads ? *arguments.n_threads : default_threads();
        results = predict_text(model, data.bytes(), n_threads);
    } catch (const text::TextError& error) {
        throw text_error(arguments.test_path, error);
    }

    // Only now, when nothing can be wrong with the input any more and all of it has been read.
    OutputFile output(arguments.output_path);
    for (const ChunkResult& result : results) output.write(result.lines);
    output.commit();
    if (!arguments.quiet) {
        write_all(STDOUT_FILENO, summary(model.view(), results), "standard output");
    }
}

void run(int argc, char** argv) {
    const Arguments arguments = parse_arguments(argc, argv);
    switch (arguments.action) {
        case Action::show_usage:
            return write_all(STDOUT_FILENO, usage, "standard output");
        case Action::show_version:
            return write_all(STDOUT_FILENO, "approxsvm-predict " APPROXSVM_VERSION "\n", "standard output");
        case Action::predict:
            return predict(arguments);
    }
}

int fail(const char* why) {
    std::fprintf(stderr, "approxsvm-predict: %s\n", why);
    return 1;
}

}  // namespace
}  // namespace approxsvm::tools

int main(int argc, char** argv) {
    using namespace approxsvm::tools;
    try {
        run(argc, argv);
        return 0;
    } catch (const UsageError& error) {
        std::fputs(usage, stdout);
        return fail(error.what());
    } catch (const std::bad_alloc&) {
        return fail("out of memory");
    } catch (const std::exception& error) {
        return fail(error.what());
    }
}
