/* The C library of approxsvm for R. All memory is R's, so R may leave any function here with a jump. */
#include <R.h>
#include <R_ext/Rdynload.h>
#include <R_ext/Utils.h>
#include <Rinternals.h>
#include <math.h>
#include <string.h>

#include "approxsvm.h"

enum { OUTPUT_CLASS, OUTPUT_VALUE, OUTPUT_PROBABILITY, OUTPUT_CERTIFIED };

static SEXP list_of(int n, const char* const* names, SEXP* values) { /* the values must be protected */
    SEXP list = PROTECT(Rf_allocVector(VECSXP, n));
    SEXP texts = PROTECT(Rf_allocVector(STRSXP, n));
    for (int k = 0; k < n; ++k) {
        SET_VECTOR_ELT(list, k, values[k]);
        SET_STRING_ELT(texts, k, Rf_mkChar(names[k]));
    }
    Rf_setAttrib(list, R_NamesSymbol, texts);
    UNPROTECT(2);
    return list;
}

/* A failure that R converts to a condition; rows count from 1, and 0 means no row. */
static SEXP failure(const approxsvm_error* error, double row) {
    static const char* const names[] = {"status", "message", "row"};
    SEXP values[3];
    values[0] = PROTECT(Rf_ScalarInteger(error->status));
    values[1] = PROTECT(Rf_allocVector(STRSXP, 1));
    SET_STRING_ELT(values[1], 0, Rf_mkCharCE(error->message, CE_UTF8));
    values[2] = PROTECT(Rf_ScalarReal(row));
    SEXP list = PROTECT(list_of(3, names, values));
    SEXP class = PROTECT(Rf_mkString("asvm_failure"));
    Rf_setAttrib(list, R_ClassSymbol, class);
    UNPROTECT(5);
    return list;
}

/* --- models */

static void close_model(SEXP pointer) {
    approxsvm_close((approxsvm_model*)R_ExternalPtrAddr(pointer));
    R_ClearExternalPtr(pointer);
}

static SEXP new_pointer(void) {
    return R_MakeExternalPtr(NULL, R_NilValue, R_NilValue);
}

/* Opens the bytes unless the pointer is open; it is closed in a model read by readRDS or another process. */
static SEXP open_model(SEXP pointer, SEXP bytes) {
    if (TYPEOF(pointer) != EXTPTRSXP || TYPEOF(bytes) != RAWSXP) Rf_error("not an asvm_model");
    if (R_ExternalPtrAddr(pointer) != NULL) return R_NilValue;
    R_RegisterCFinalizerEx(pointer, close_model, TRUE);
    approxsvm_model* model = NULL;
    approxsvm_error error;
    if (approxsvm_open_bytes(RAW(bytes), (size_t)XLENGTH(bytes), &model, &error) != APPROXSVM_OK)
        return failure(&error, 0.0);
    R_SetExternalPtrAddr(pointer, model);
    return R_NilValue;
}

static const approxsvm_model* model_of(SEXP pointer) {
    const approxsvm_model* model = TYPEOF(pointer) == EXTPTRSXP ? R_ExternalPtrAddr(pointer) : NULL;
    if (model == NULL) Rf_error("the model is not open");
    return model;
}

typedef size_t (*TextOf)(const approxsvm_model*, size_t, char*, size_t);

static SEXP texts_of(const approxsvm_model* model, size_t n, TextOf text_of) {
    SEXP texts = PROTECT(Rf_allocVector(STRSXP, (R_xlen_t)n));
    for (size_t k = 0; k < n; ++k) {
        const size_t length = text_of(model, k, NULL, 0);
        char* text = R_alloc(length + 1, 1);
        text_of(model, k, text, length + 1);
        SET_STRING_ELT(texts, (R_xlen_t)k, Rf_mkCharLenCE(text, (int)length, CE_UTF8));
    }
    UNPROTECT(1);
    return texts;
}

static SEXP describe(SEXP pointer) {
    static const char* const names[] = {"task",   "mode",         "n_features", "n_targets",       "columns",
                                        "labels", "n_categories", "target",     "n_probabilities", "n_values"};
    const approxsvm_model* model = model_of(pointer);
    const size_t d = approxsvm_n_features(model);
    SEXP values[10];
    values[0] = PROTECT(Rf_ScalarInteger(approxsvm_task(model)));
    values[1] = PROTECT(Rf_ScalarInteger(approxsvm_mode(model)));
    values[2] = PROTECT(Rf_ScalarReal((double)d));
    values[3] = PROTECT(Rf_ScalarReal((double)approxsvm_n_targets(model)));
    values[4] = PROTECT(texts_of(model, d, approxsvm_feature_name));
    values[5] = PROTECT(texts_of(model, approxsvm_n_labels(model), approxsvm_label_text));
    values[6] = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t)d));
    for (size_t j = 0; j < d; ++j) REAL(values[6])[j] = (double)approxsvm_n_categories(model, j);
    values[7] = PROTECT(Rf_mkString(approxsvm_target(model)));
    values[8] = PROTECT(Rf_ScalarReal((double)approxsvm_n_probabilities(model)));
    values[9] = PROTECT(Rf_ScalarReal((double)approxsvm_n_decisions(model)));
    SEXP list = list_of(10, names, values);
    UNPROTECT(10);
    return list;
}

/* Returns the codes for texts in a column, which counts from 0; NA is a missing value. */
static SEXP codes(SEXP pointer, SEXP column, SEXP texts) {
    const approxsvm_model* model = model_of(pointer);
    const size_t j = (size_t)Rf_asInteger(column);
    const R_xlen_t n = XLENGTH(texts);
    SEXP found = PROTECT(Rf_allocVector(REALSXP, n));
    for (R_xlen_t k = 0; k < n; ++k) {
        const SEXP text = STRING_ELT(texts, k);
        const char* utf8 = text == NA_STRING ? NULL : Rf_translateCharUTF8(text);
        REAL(found)[k] = approxsvm_category_code(model, j, utf8, utf8 == NULL ? 0 : strlen(utf8));
    }
    UNPROTECT(1);
    return found;
}

/* --- answers */

typedef struct Answers {
    const approxsvm_model* model;
    approxsvm_request request;
    int output;
    size_t d, per_row; /* number of elements in a raw row and in its answer */
    size_t room_rows;  /* number of rows for which the buffers below have room */
    double* rows;      /* raw rows, one after another */
    R_xlen_t* places;  /* their indices among all rows */
    R_xlen_t n;        /* number of all rows */
    SEXP found;        /* answers for all rows, column by column */
} Answers;

static void write_answers(const Answers* a, size_t n_rows, size_t first) {
    for (size_t k = 0; k < a->per_row; ++k) {
        for (size_t i = 0; i < n_rows; ++i) {
            const size_t from = i * a->per_row + k;
            const R_xlen_t to = a->places[first + i] + (R_xlen_t)k * a->n;
            switch (a->output) {
                case OUTPUT_CLASS:
                    INTEGER(a->found)[to] = (int)a->request.labels[from] + 1;
                    break;
                case OUTPUT_VALUE:
                    REAL(a->found)[to] = a->request.values[from];
                    break;
                case OUTPUT_PROBABILITY:
                    REAL(a->found)[to] = a->request.probabilities[from];
                    break;
                default:
                    LOGICAL(a->found)[to] = a->request.certified[from];
            }
        }
    }
}

/* Answers rows in the buffer; error->row is relative to them. */
static approxsvm_status answer(const Answers* a, size_t first, size_t n_rows, approxsvm_error* error) {
    const approxsvm_status status =
        approxsvm_evaluate_f64(a->model, a->rows + first * a->d, n_rows * a->d, &a->request, error);
    if (status == APPROXSVM_OK) write_answers(a, n_rows, first);
    return status;
}

static int has_infinity(const double* row, size_t d) {
    for (size_t j = 0; j < d; ++j) {
        if (isinf(row[j])) return 1;
    }
    return 0;
}

/* Answers the rows one by one. Leaves NA if the model rejects a missing value or, with `lenient`, any row. Returns
 * false and sets `error` for anything else. */
static int answer_each(const Answers* a, size_t n_rows, int missing, int lenient, approxsvm_error* error) {
    for (size_t i = 0; i < n_rows; ++i) {
        if (answer(a, i, 1, error) == APPROXSVM_OK) continue;
        const int rejects_missing =
            missing && error->status == APPROXSVM_NOT_FINITE && !has_infinity(a->rows + i * a->d, a->d);
        if (error->row >= 0 && (lenient || rejects_missing)) continue;
        if (error->row >= 0) error->row = (int64_t)i;
        return 0;
    }
    return 1;
}

static size_t outputs_per_row(const approxsvm_model* model, int output) {
    return output == OUTPUT_VALUE         ? approxsvm_n_decisions(model)
           : output == OUTPUT_PROBABILITY ? approxsvm_n_probabilities(model)
                                          : approxsvm_n_targets(model);
}

static void provide_memory(Answers* a) {
    const size_t numbers = (size_t)1 << 20, wanted = numbers / a->d + 16;
    a->room_rows = (size_t)a->n < wanted ? (size_t)a->n : wanted;
    a->rows = (double*)R_alloc(a->room_rows * a->d + 1, sizeof(double));
    a->places = (R_xlen_t*)R_alloc(a->room_rows + 1, sizeof(R_xlen_t));
    const size_t size = a->room_rows * a->per_row, at_least_one = size + 1; /* null would skip the output */
    approxsvm_request* request = &a->request;
    switch (a->output) {
        case OUTPUT_CLASS:
            request->labels = (uint32_t*)R_alloc(at_least_one, sizeof(uint32_t));
            request->labels_size = size;
            break;
        case OUTPUT_VALUE:
            request->values = (double*)R_alloc(at_least_one, sizeof(double));
            request->values_size = size;
            break;
        case OUTPUT_PROBABILITY:
            request->probabilities = (double*)R_alloc(at_least_one, sizeof(double));
            request->probabilities_size = size;
            break;
        default:
            request->certified = (uint8_t*)R_alloc(at_least_one, 1);
            request->certified_size = size;
    }
}

/* A matrix of NA, to be filled for the rows that are answered. */
static SEXP empty_answers(int output, R_xlen_t n, size_t per_row) {
    const SEXPTYPE type = output == OUTPUT_CLASS ? INTSXP : output == OUTPUT_CERTIFIED ? LGLSXP : REALSXP;
    SEXP found = Rf_allocVector(type, n * (R_xlen_t)per_row);
    for (R_xlen_t i = 0; i < XLENGTH(found); ++i) {
        if (type == REALSXP) REAL(found)[i] = NA_REAL;
        if (type == INTSXP) INTEGER(found)[i] = NA_INTEGER;
        if (type == LGLSXP) LOGICAL(found)[i] = NA_LOGICAL;
    }
    return found;
}

/* Copies the next rows with missing values, or the next ones without, to the buffer. */
static size_t gather(Answers* a, const double* const* columns, const int* missing, int which, R_xlen_t* next) {
    size_t n_rows = 0;
    for (; *next < a->n && n_rows < a->room_rows; ++*next) {
        if ((missing[*next] != 0) == which) a->places[n_rows++] = *next;
    }
    for (size_t j = 0; j < a->d; ++j) {
        for (size_t i = 0; i < n_rows; ++i) a->rows[i * a->d + j] = columns[j][a->places[i]];
    }
    return n_rows;
}

/* Answers for the rows whose columns are given. `missing` marks rows with NA, which get NA if the model rejects them;
 * with `lenient`, every row that it rejects gets NA. */
static SEXP evaluate(SEXP pointer, SEXP given, SEXP missing, SEXP output, SEXP lenient, SEXP threads) {
    const approxsvm_request nothing = APPROXSVM_REQUEST;
    Answers a = {model_of(pointer), nothing, Rf_asInteger(output)};
    a.request.n_threads = Rf_asInteger(threads);
    a.d = approxsvm_n_features(a.model);
    a.n = XLENGTH(missing);
    a.per_row = outputs_per_row(a.model, a.output);
    if ((size_t)XLENGTH(given) != a.d) Rf_error("%d columns, expected %d", (int)XLENGTH(given), (int)a.d);
    const double** columns = (const double**)R_alloc(a.d, sizeof(double*));
    for (size_t j = 0; j < a.d; ++j) {
        const SEXP column = VECTOR_ELT(given, (R_xlen_t)j);
        if (TYPEOF(column) != REALSXP || XLENGTH(column) != a.n) Rf_error("column %d is malformed", (int)j + 1);
        columns[j] = REAL(column);
    }
    provide_memory(&a);
    a.found = PROTECT(empty_answers(a.output, a.n, a.per_row));
    approxsvm_error error;
    int succeeded = approxsvm_evaluate_f64(a.model, a.rows, 0, &a.request, &error) == APPROXSVM_OK;
    for (int which = 0; which < 2 && succeeded; ++which) {
        for (R_xlen_t next = 0; next < a.n && succeeded;) {
            const size_t n_rows = gather(&a, columns, LOGICAL(missing), which, &next);
            succeeded = answer(&a, 0, n_rows, &error) == APPROXSVM_OK;
            if (!succeeded && error.row >= 0 && (which == 1 || Rf_asLogical(lenient)))
                succeeded = answer_each(&a, n_rows, which, Rf_asLogical(lenient), &error);
            R_CheckUserInterrupt();
        }
    }
    UNPROTECT(1);
    if (succeeded) return a.found;
    return failure(&error, error.row < 0 ? 0.0 : (double)a.places[error.row] + 1.0);
}

static const R_CallMethodDef calls[] = {
    {"C_new_pointer", (DL_FUNC)&new_pointer, 0}, {"C_open_model", (DL_FUNC)&open_model, 2},
    {"C_describe", (DL_FUNC)&describe, 1},       {"C_codes", (DL_FUNC)&codes, 3},
    {"C_evaluate", (DL_FUNC)&evaluate, 6},       {NULL, NULL, 0}};

void R_init_approxsvm(DllInfo* info) {
    R_registerRoutines(info, NULL, calls, NULL, NULL);
    R_useDynamicSymbols(info, FALSE);
}
