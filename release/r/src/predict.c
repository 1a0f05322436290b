#include <R.h>
#include <R_ext/Rdynload.h>
#include <Rinternals.h>

#include "flowers.h"

/* A list of labels and of what is certain; R's matrices are column by column. */
static SEXP predict_flowers(SEXP rows) {
    const R_xlen_t n = Rf_nrows(rows);
    const double *numbers = REAL(rows);
    SEXP found = PROTECT(Rf_allocVector(VECSXP, 2));
    SEXP labels = Rf_allocVector(STRSXP, n);
    SET_VECTOR_ELT(found, 0, labels);
    SEXP certain = Rf_allocVector(LGLSXP, n);
    SET_VECTOR_ELT(found, 1, certain);
    for (R_xlen_t i = 0; i < n; ++i) {
        float row[4];
        for (int j = 0; j < 4; ++j) row[j] = (float)numbers[i + n * j];
        SET_STRING_ELT(labels, i, Rf_mkCharCE(flowers_labels[flowers_predict(row)], CE_UTF8));
        LOGICAL(certain)[i] = flowers_is_certain(row);
    }
    SEXP names = PROTECT(Rf_allocVector(STRSXP, 2));
    SET_STRING_ELT(names, 0, Rf_mkChar("labels"));
    SET_STRING_ELT(names, 1, Rf_mkChar("certain"));
    Rf_setAttrib(found, R_NamesSymbol, names);
    UNPROTECT(2);
    return found;
}

static const R_CallMethodDef calls[] = {{"C_predict_flowers", (DL_FUNC)&predict_flowers, 1}, {NULL, NULL, 0}};

void R_init_flowers(DllInfo *info) {
    R_registerRoutines(info, NULL, calls, NULL, NULL);
    R_useDynamicSymbols(info, FALSE);
}
