// approxsvm-predict is a faster substitute for svm-predict. With the same model file, it is tens of times faster than
// svm-predict, and its output is byte-identical. With a compiled model, it is hundreds of times faster, so its startup
// must also be quick.
#include <cstdio>
#include <new>

#include "arguments.hpp"
#include "closing_lines.hpp"
#include "output_file.hpp"
#include "predict_text.hpp"
#include "utf8_arguments.hpp"

namespace approxsvm::tools {
namespace {

std::size_t default_threads() {
    return std::max(1u, std::thread::hardware_concurrency());  // hardware_concurrency() is 0 if unknown
}

void refuse_to_overwrite(const char* name, const std::string& input, const std::string& output) {
    if (!is_same_file(input, output)) return;
    throw std::runtime_error("output_file " + output + " is the same file as " + name + " " + input +
                             ", which would be lost");
}

void predict(const Arguments& arguments) {
    refuse_to_overwrite("test_file", arguments.test_path, arguments.output_path);
    refuse_to_overwrite("model_file", arguments.model_path, arguments.output_path);
    const LoadedModel model(arguments.model_path, arguments.probabilities);
    const text::MappedFile data(arguments.test_path);
    const Formatter formatter(model);
    std::vector<ChunkResult> results;
    try {
        const std::size_t n_threads = arguments.n_threads ? *arguments.n_threads : default_threads();
        results = predict_text(model, formatter, data.bytes(), n_threads);
    } catch (const text::TextError& error) {
        throw text_error(arguments.test_path, text::explained(error, data.bytes(), text::libsvm_data));
    }

    // Open the output only after all of the input has been read and checked.
    OutputFile output(arguments.output_path);
    output.write(formatter.header());
    for (const ChunkResult& result : results) output.write(result.lines);
    output.commit();
    if (arguments.quiet) return;
    write_to_standard_output(probability_remark(model, arguments.probabilities) + summary(model.view(), results));
}

void run(int argc, char** argv) {
    const Arguments arguments = ArgumentParser(utf8_arguments(argc, argv)).parse();
    switch (arguments.action) {
        case Action::show_usage:
            return write_to_standard_output(usage);
        case Action::show_version:
            return write_to_standard_output("approxsvm-predict " APPROXSVM_VERSION "\n");
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
