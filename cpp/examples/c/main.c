/* predict MODEL.asvm < rows: reads numeric rows, one per line, and prints each row's labels, decision values and error
 * bounds; "?" after a label means that an approximate model does not prove it. */
#include <approxsvm.h>
#include <stdio.h>
#include <stdlib.h>

/* Buffers for one row. */
struct answers {
    uint32_t* labels;
    uint8_t* certified;
    double *values, *bounds;
};

/* Prints a label, with "?" if an approximate model does not prove it. */
static void print_label(const approxsvm_model* model, uint32_t position, int certified) {
    approxsvm_label label;
    char digits[64];
    approxsvm_label_at(model, position, &label);
    if (label.kind == APPROXSVM_LABEL_TEXT) {
        fwrite(label.text, 1, label.text_size, stdout);
    } else {
        approxsvm_label_text(model, position, digits, sizeof digits);
        fputs(digits, stdout);
    }
    if (approxsvm_mode(model) == APPROXSVM_APPROXIMATE && !certified) putchar('?');
}

static int print_row(const approxsvm_model* model, const double* row, struct answers* answers) {
    const size_t n_decisions = approxsvm_n_decisions(model);
    const size_t n_labels = approxsvm_n_labels(model) > 0 ? approxsvm_n_targets(model) : 0; /* per row */
    approxsvm_error error;
    approxsvm_request request = APPROXSVM_REQUEST;
    if (n_labels > 0) {
        request.labels = answers->labels;
        request.labels_size = n_labels;
        request.certified = answers->certified;
        request.certified_size = n_labels;
    }
    if (n_decisions > 0) {
        request.values = answers->values;
        request.values_size = n_decisions;
        request.bounds = answers->bounds;
        request.bounds_size = n_decisions;
    }
    if (approxsvm_evaluate_f64(model, row, approxsvm_n_features(model), &request, &error) != APPROXSVM_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    for (size_t k = 0; k < n_labels; ++k) {
        if (k > 0) putchar(' ');
        print_label(model, answers->labels[k], answers->certified[k]);
    }
    for (size_t k = 0; k < n_decisions; ++k) printf(" %.9g +- %.1e", answers->values[k], answers->bounds[k]);
    printf("\n");
    return 0;
}

/* Returns 1 if a row was read, 0 at the end of the input, and -1 for invalid input. */
static int read_row(double* row, size_t n) {
    for (size_t j = 0; j < n; ++j) {
        if (scanf("%lf", &row[j]) != 1) return j == 0 && feof(stdin) ? 0 : -1;
    }
    return 1;
}

int main(int argc, char** argv) {
    approxsvm_model* model;
    approxsvm_error error;
    if (argc != 2) {
        fprintf(stderr, "usage: predict MODEL.asvm < rows\n");
        return 1;
    }
    if (approxsvm_open_file(argv[1], &model, &error) != APPROXSVM_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    const size_t n_features = approxsvm_n_features(model), n_decisions = approxsvm_n_decisions(model);
    const size_t n_targets = approxsvm_n_targets(model);
    double* row = malloc(n_features * sizeof *row);
    struct answers answers = {calloc(n_targets, sizeof *answers.labels), calloc(n_targets, sizeof *answers.certified),
                              calloc(n_decisions + 1, sizeof(double)), calloc(n_decisions + 1, sizeof(double))};
    int found = -1;
    if (row != NULL && answers.labels != NULL && answers.certified != NULL && answers.values != NULL &&
        answers.bounds != NULL) {
        while ((found = read_row(row, n_features)) == 1) {
            if (print_row(model, row, &answers) != 0) break;
        }
    }
    if (found == -1) fprintf(stderr, "the input is not rows of %zu numbers\n", n_features);
    free(row);
    free(answers.labels);
    free(answers.certified);
    free(answers.values);
    free(answers.bounds);
    approxsvm_close(model);
    return found == 0 ? 0 : 1;
}
