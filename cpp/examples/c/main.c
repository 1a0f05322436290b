/* predict MODEL.asvm < rows: reads rows of numbers, one to a line, and prints the label of each, its decision values
 * and how far these may be from the exact model's; "?" behind a label that an approximate model does not prove. */
#include <approxsvm.h>
#include <stdio.h>
#include <stdlib.h>

/* What a program needs for a row at a time. */
struct answers {
    uint32_t label;
    uint8_t certified;
    double *values, *bounds;
};

static int print_row(const approxsvm_model* model, const double* row, struct answers* answers) {
    const size_t n_decisions = approxsvm_n_decisions(model), n_labels = approxsvm_n_labels(model);
    approxsvm_error error;
    approxsvm_request request = APPROXSVM_REQUEST;
    if (n_labels > 0) {
        request.labels = &answers->label;
        request.labels_size = 1;
        request.certified = &answers->certified;
        request.certified_size = 1;
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
    if (n_labels > 0) {
        char text[64];
        const int is_open = approxsvm_mode(model) == APPROXSVM_APPROXIMATE && !answers->certified;
        approxsvm_label_text(model, answers->label, text, sizeof text);
        printf("%s%s", text, is_open ? "?" : "");
    }
    for (size_t k = 0; k < n_decisions; ++k) printf(" %.9g +- %.1e", answers->values[k], answers->bounds[k]);
    printf("\n");
    return 0;
}

/* 1 for a row, 0 at the end of the input, -1 for what is neither. */
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
    double* row = malloc(n_features * sizeof *row);
    struct answers answers = {0, 0, calloc(n_decisions + 1, sizeof(double)), calloc(n_decisions + 1, sizeof(double))};
    int found = -1;
    if (row != NULL && answers.values != NULL && answers.bounds != NULL) {
        while ((found = read_row(row, n_features)) == 1) {
            if (print_row(model, row, &answers) != 0) break;
        }
    }
    if (found == -1) fprintf(stderr, "the input is not rows of %zu numbers\n", n_features);
    free(row);
    free(answers.values);
    free(answers.bounds);
    approxsvm_close(model);
    return found == 0 ? 0 : 1;
}
