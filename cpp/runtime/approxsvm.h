/* approxsvm for programs in C, and in every language that can call C: prediction with a compiled kernel machine.
 * Opening a model chooses the fastest target that this machine can run.
 *
 *     approxsvm_model *model;
 *     approxsvm_error error;
 *     if (approxsvm_open_file("model.asvm", &model, &error) != APPROXSVM_OK) { puts(error.message); return 1; }
 *     size_t rows_size = n_rows * approxsvm_n_features(model);
 *     size_t labels_size = n_rows * approxsvm_n_targets(model);
 *     if (approxsvm_predict_f32(model, rows, rows_size, labels, labels_size, &error) != APPROXSVM_OK) ...
 *     approxsvm_close(model);
 *
 * Rows are in the source model's raw format, because the artifact of a pipeline scales and projects them itself. An
 * open model never changes, so any number of threads may use it at once. No function throws, exits or prints. Buffers
 * belong to the caller. Each buffer has a size in elements; if one is too small, the call fails before anything is
 * written. After an error the contents of the buffers are undefined. `error` may always be null.
 *
 * An open model takes a few dozen KB in addition to the artifact, and 12 bytes per element of the support vectors.
 * Calls on one thread do not allocate memory unless another thread is executing a call with the same model.
 *
 * These declarations are stable: a later version may add functions, codes, and fields at the end of approxsvm_request.
 * An incompatible change raises APPROXSVM_ABI_VERSION, which is part of the library's name.
 */
#ifndef APPROXSVM_H
#define APPROXSVM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define APPROXSVM_ABI_VERSION 1

#if defined(_WIN32) && defined(APPROXSVM_BUILDING)
#define APPROXSVM_API __declspec(dllexport)
#elif defined(_WIN32) && !defined(APPROXSVM_STATIC)
#define APPROXSVM_API __declspec(dllimport)
#elif defined(__GNUC__) && defined(APPROXSVM_BUILDING)
#define APPROXSVM_API __attribute__((visibility("default")))
#else
#define APPROXSVM_API
#endif

/* --- errors */

typedef int32_t approxsvm_status;
enum {
    APPROXSVM_OK = 0,

    APPROXSVM_INVALID_ARGUMENT = 1, /* an argument is a null pointer, or the request is invalid */
    APPROXSVM_OUT_OF_MEMORY = 2,
    APPROXSVM_UNREADABLE_FILE = 3,
    APPROXSVM_BAD_TARGET = 4, /* the environment variable APPROXSVM_TARGET names a target that cannot run on this
                                 machine */
    APPROXSVM_INTERNAL = 5,   /* an internal error of this library */

    /* the artifact */
    APPROXSVM_TRUNCATED = 10,           /* fewer bytes than the header or the section table needs */
    APPROXSVM_BAD_MAGIC = 11,           /* the bytes are not an artifact */
    APPROXSVM_UNSUPPORTED_VERSION = 12, /* this version of the format is not supported */
    APPROXSVM_SIZE_MISMATCH = 13,
    APPROXSVM_CHECKSUM_MISMATCH = 14,
    APPROXSVM_BAD_HEADER = 15,
    APPROXSVM_BAD_SECTION = 16,
    APPROXSVM_BAD_COEFFICIENT = 17,
    APPROXSVM_BAD_LABELS = 18,
    APPROXSVM_BAD_SUPPORT_VECTORS = 19,
    APPROXSVM_CHECK_ROW_MISMATCH = 20, /* this machine computes other values than the machine that compiled the model */

    /* errors in a row; the error's `row` is its index */
    APPROXSVM_NOT_FINITE = 30,       /* a column that the model uses contains NaN or infinity */
    APPROXSVM_UNSORTED_INDICES = 31, /* the columns of a sparse row are not strictly increasing */
    APPROXSVM_MAP_OVERFLOW = 32,     /* scaling overflows float64; found: the row's largest value */
    APPROXSVM_BEYOND_FLOAT64 = 33,   /* the value, or one of its terms, overflows float64 */
    APPROXSVM_BEYOND_TOLERANCE = 34, /* the bound exceeds the requested tolerance; found: bound, expected: tolerance */
    APPROXSVM_UNKNOWN_FEATURE = 35,  /* a sparse row for a pipeline has an unknown column */
    APPROXSVM_OUTSIDE_DOMAIN = 36,   /* a pipeline step rejects a number, such as -1 for log;
                                        found: the number, expected: the limit in the message */

    /* errors in the call */
    APPROXSVM_BUFFER_TOO_SMALL = 40,
    APPROXSVM_WRONG_ROW_SIZE = 41, /* the number of elements is not a multiple of n_features */
    APPROXSVM_BAD_ROW_STARTS = 42, /* row_starts decreases, or exceeds the number of values */
    APPROXSVM_NO_LABELS = 43,      /* a regression has no labels */
    APPROXSVM_NO_VALUES = 44,      /* ensembles that average probabilities or vote have no values */
    APPROXSVM_NO_PROBABILITIES = 45,
    APPROXSVM_NO_EXACT_VALUES = 46, /* an approximate model has no exact values */
    APPROXSVM_WRONG_FIELD = 47      /* a record has a field that the model does not take */
};

typedef struct approxsvm_error {
    approxsvm_status status;
    int64_t row;            /* the index of the faulty row, from 0; -1 if no row is at fault */
    double found, expected; /* values described with the codes; 0 for other codes */
    char message[240];      /* a lower-case line, terminated by 0 */
} approxsvm_error;

/* Returns the meaning of a status code; never null. */
APPROXSVM_API const char* approxsvm_status_text(approxsvm_status status);

/* Return the library's version, such as "0.1.0", and the APPROXSVM_ABI_VERSION with which the library was built. */
APPROXSVM_API const char* approxsvm_version(void);
APPROXSVM_API uint32_t approxsvm_abi_version(void);

/* --- models */

typedef struct approxsvm_model approxsvm_model;

/* Open an artifact: validate all its bytes, and replay its check rows on this machine. Afterwards the file may be
 * changed or removed; bytes in memory are copied and may be freed. The path is UTF-8, on Windows too. After an error
 * *model is null. */
APPROXSVM_API approxsvm_status approxsvm_open_file(const char* path, approxsvm_model** model, approxsvm_error* error);
APPROXSVM_API approxsvm_status approxsvm_open_bytes(const void* bytes, size_t n_bytes, approxsvm_model** model,
                                                    approxsvm_error* error);
/* Closes a model that is no longer used by any thread; ignores a null pointer. */
APPROXSVM_API void approxsvm_close(approxsvm_model* model);

enum { APPROXSVM_CLASSIFICATION = 0, APPROXSVM_REGRESSION = 1, APPROXSVM_ONE_CLASS = 2 };
enum { APPROXSVM_APPROXIMATE = 0, APPROXSVM_CERTIFIED = 1, APPROXSVM_EXACT = 2, APPROXSVM_ENSEMBLE = 3 };

/* A null model has no features, labels or strings: its sizes are 0, its strings are empty, and its task and mode are
 * -1. */
APPROXSVM_API int32_t approxsvm_task(const approxsvm_model* model);
APPROXSVM_API int32_t approxsvm_mode(const approxsvm_model* model);
APPROXSVM_API size_t approxsvm_n_features(const approxsvm_model* model);      /* number of features per raw row */
APPROXSVM_API size_t approxsvm_n_labels(const approxsvm_model* model);        /* number of labels; 0 for a regression */
APPROXSVM_API size_t approxsvm_n_targets(const approxsvm_model* model);       /* number of labels per row */
APPROXSVM_API size_t approxsvm_n_decisions(const approxsvm_model* model);     /* number of values per row */
APPROXSVM_API size_t approxsvm_n_probabilities(const approxsvm_model* model); /* probabilities per row */
APPROXSVM_API const char* approxsvm_target(const approxsvm_model* model);     /* "avx512", "avx2", "neon", "baseline" */

enum { APPROXSVM_LABEL_NONE = 0, APPROXSVM_LABEL_INT64 = 1, APPROXSVM_LABEL_FLOAT64 = 2, APPROXSVM_LABEL_TEXT = 3 };
typedef struct approxsvm_label {
    int32_t kind;
    int64_t integer;
    double real;
    const char* text; /* UTF-8 without a terminating 0, in the model's memory; null if the label is a number */
    size_t text_size;
} approxsvm_label;

/* Stores the label with this index; a one-class model has the labels 1 and -1. Beyond the last label, `kind` is
 * APPROXSVM_LABEL_NONE. */
APPROXSVM_API void approxsvm_label_at(const approxsvm_model* model, size_t position, approxsvm_label* label);

/* Writes the label as a string, truncated to size - 1 bytes, and a terminating 0. Like snprintf, returns the length of
 * the whole string without the 0. */
APPROXSVM_API size_t approxsvm_label_text(const approxsvm_model* model, size_t position, char* text, size_t size);

/* Returns the code that represents a string (UTF-8, arbitrary bytes) in a string column, such as a category of a
 * pipeline's encoder. The code is -1 for a string that the model does not know; a row with this code is rejected if the
 * source rejects unknown strings. A null pointer stands for a missing value. */
APPROXSVM_API double approxsvm_category_code(const approxsvm_model* model, size_t column, const char* text,
                                             size_t text_size);
/* The first function writes the string for a code, as approxsvm_label_text writes labels; the second returns the number
 * of codes in a column. Codes start at 0; a numeric column has none. */
APPROXSVM_API size_t approxsvm_category_text(const approxsvm_model* model, size_t column, size_t code, char* text,
                                             size_t size);
APPROXSVM_API size_t approxsvm_n_categories(const approxsvm_model* model, size_t column);

/* Writes a column's name as approxsvm_label_text writes labels. The name is empty if the source was fitted without
 * names. */
APPROXSVM_API size_t approxsvm_feature_name(const approxsvm_model* model, size_t column, char* name, size_t size);

/* A field of a record, such as a member of a JSON object. APPROXSVM_MISSING stands for the source's missing value. */
enum { APPROXSVM_MISSING = 0, APPROXSVM_NUMBER = 1, APPROXSVM_TEXT = 2 };
typedef struct approxsvm_field {
    const char* name; /* column name in UTF-8; null in records whose fields are in column order */
    size_t name_size;
    int32_t kind;
    double number;
    const char* text; /* string in UTF-8 */
    size_t text_size;
} approxsvm_field;

/* Converts a record to a raw row of n_features values for approxsvm_evaluate_f64 and approxsvm_predict_f64. Columns
 * without a field hold missing values, which evaluation rejects if the source does. The error APPROXSVM_WRONG_FIELD
 * reports an unknown or repeated name, a string in a numeric column that the model uses, or a number in a string
 * column. */
APPROXSVM_API approxsvm_status approxsvm_row_of_record(const approxsvm_model* model, const approxsvm_field* fields,
                                                       size_t n_fields, double* row, size_t row_size,
                                                       approxsvm_error* error);

/* --- predictions */

/* The values and bounds to compute. Labels do not depend on this choice. */
enum {
    APPROXSVM_PROMISED = 0, /* values within the tolerance requested at compilation; without a tolerance, the source
                               model's values */
    APPROXSVM_SETTLED = 1,  /* values from the stage that determined the label: cheap, but only within their bounds of
                               the exact values */
    APPROXSVM_EXACT_VALUES = 2
};

/* The outputs to compute and their buffers; a null pointer skips an output. Begin with
 * `approxsvm_request request = APPROXSVM_REQUEST;`. A positive value favours the model's first label or, with one value
 * per pair of labels (0, 1), (0, 2), ..., the first label of the pair; |value - exact value| never exceeds the value's
 * bound. Probabilities are in label order. */
typedef struct approxsvm_request {
    size_t struct_size; /* sizeof(approxsvm_request) */
    int32_t values_kind;
    int32_t n_threads; /* maximum number of threads; 0 and 1 mean only the caller's thread */

    uint32_t* labels; /* label indices, n_targets per row */
    size_t labels_size;
    double* values; /* values, n_decisions per row */
    size_t values_size;
    double* bounds;
    size_t bounds_size;
    double* probabilities; /* probabilities, n_probabilities per row */
    size_t probabilities_size;
    double* probability_bounds;
    size_t probability_bounds_size;
    uint8_t* certified; /* certificates, n_targets per row: 1 where the first stage proves the label, or meets a
                           regression's tolerance; independent of the other outputs and values_kind */
    size_t certified_size;
} approxsvm_request;

#define APPROXSVM_REQUEST \
    {sizeof(approxsvm_request), APPROXSVM_PROMISED, 1, NULL, 0, NULL, 0, NULL, 0, NULL, 0, NULL, 0, NULL, 0}

/* Contiguous rows: rows_size elements in total, n_features per row. */
APPROXSVM_API approxsvm_status approxsvm_evaluate_f32(const approxsvm_model* model, const float* rows, size_t rows_size,
                                                      const approxsvm_request* request, approxsvm_error* error);
APPROXSVM_API approxsvm_status approxsvm_evaluate_f64(const approxsvm_model* model, const double* rows,
                                                      size_t rows_size, const approxsvm_request* request,
                                                      approxsvm_error* error);

/* Sparse rows (CSR): for row_starts[i] <= k < row_starts[i + 1], row i has the value values[k] in column columns[k].
 * Columns are numbered from 0 and ascend within a row; row_starts has n_rows + 1 elements. Column indices have 32 or 64
 * bits. A column index of n_features or above is an error for a pipeline. For other models, such a column is treated as
 * in LIBSVM: as a feature that occurs in no support vector. */
APPROXSVM_API approxsvm_status approxsvm_evaluate_csr_f32(const approxsvm_model* model, const float* values,
                                                          const int32_t* columns, size_t n_values,
                                                          const int32_t* row_starts, size_t n_rows,
                                                          const approxsvm_request* request, approxsvm_error* error);
APPROXSVM_API approxsvm_status approxsvm_evaluate_csr_f64(const approxsvm_model* model, const double* values,
                                                          const int32_t* columns, size_t n_values,
                                                          const int32_t* row_starts, size_t n_rows,
                                                          const approxsvm_request* request, approxsvm_error* error);
APPROXSVM_API approxsvm_status approxsvm_evaluate_csr_f32_i64(const approxsvm_model* model, const float* values,
                                                              const int64_t* columns, size_t n_values,
                                                              const int64_t* row_starts, size_t n_rows,
                                                              const approxsvm_request* request, approxsvm_error* error);
APPROXSVM_API approxsvm_status approxsvm_evaluate_csr_f64_i64(const approxsvm_model* model, const double* values,
                                                              const int64_t* columns, size_t n_values,
                                                              const int64_t* row_starts, size_t n_rows,
                                                              const approxsvm_request* request, approxsvm_error* error);

/* These functions compute only labels, on the caller's thread. */
APPROXSVM_API approxsvm_status approxsvm_predict_f32(const approxsvm_model* model, const float* rows, size_t rows_size,
                                                     uint32_t* labels, size_t labels_size, approxsvm_error* error);
APPROXSVM_API approxsvm_status approxsvm_predict_f64(const approxsvm_model* model, const double* rows, size_t rows_size,
                                                     uint32_t* labels, size_t labels_size, approxsvm_error* error);

#ifdef __cplusplus
}
#endif

#endif
