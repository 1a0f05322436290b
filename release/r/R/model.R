# Models, opened from a file or bytes. The object keeps the bytes, so it survives saveRDS and works in other processes.

asvm_load <- function(file, source = NULL, levels = NULL, columns = NULL) {
  if (!is.null(source)) {
    known <- names_of_source(source)
    if (is.null(levels)) levels <- known$levels
    if (is.null(columns)) columns <- known$columns
  }
  bytes <- if (is.raw(file)) file else read_bytes(file)
  model <- structure(list(bytes = bytes, pointer = .Call(C_new_pointer)), class = "asvm_model")
  reopen(model, if (is.raw(file)) "the bytes" else file)
  about <- .Call(C_describe, model$pointer)
  model$task <- c("classification", "regression", "one_class")[about$task + 1L]
  model$mode <- c("approximate", "certified", "exact", "ensemble")[about$mode + 1L]
  model$n_features <- about$n_features
  model$n_targets <- about$n_targets
  model$n_values <- about$n_values
  model$n_probabilities <- about$n_probabilities
  model$n_categories <- about$n_categories
  model$columns <- chosen_columns(columns, if (any(nzchar(about$columns))) about$columns, about$n_features)
  model$labels <- about$labels
  model$codes <- seq_along(about$labels)
  if (!is.null(levels)) {
    model$codes <- codes_of_levels(about$labels, levels)
    model$labels <- as.character(levels)
  }
  if (!is.null(source)) {
    model$terms <- known$terms
    if (about$n_values > 1) model$pairs <- as.vector(combn(model$labels[model$codes], 2L, paste, collapse = "/"))
  }
  model
}

# The levels, columns and terms with which an e1071 or kernlab model was trained; LIBSVM files contain none of them.
names_of_source <- function(source) {
  if (inherits(source, "svm")) {
    levels <- if (source$type < 2) source$levels
    vectors <- source$SV
    terms <- source$terms
  } else if (inherits(source, "ksvm")) {
    levels <- if (kernlab::type(source) %in% c("C-svc", "nu-svc", "C-bsvc")) kernlab::lev(source)
    vectors <- kernlab::xmatrix(source)
    if (is.list(vectors)) vectors <- vectors[[1L]]
    terms <- attr(source, "terms") # a slot, kterms in other versions of kernlab
    if (is.null(terms)) terms <- attr(source, "kterms")
  } else {
    fail(sprintf("source must be an svm of e1071 or a ksvm of kernlab, not %s", paste(class(source), collapse = ", ")),
      "approxsvm_input_error")
  }
  terms <- if (inherits(terms, "terms")) delete.response(terms)
  if (!is.null(terms)) environment(terms) <- globalenv() # saveRDS would keep its training data
  list(levels = levels, columns = colnames(vectors), terms = terms)
}

read_bytes <- function(file) {
  if (!is.character(file) || length(file) != 1L || is.na(file)) {
    fail("file must be one path or a raw vector", "approxsvm_input_error")
  }
  path <- path.expand(file)
  if (!file.exists(path) || dir.exists(path)) {
    fail(paste0(file, ": there is no such file"), "approxsvm_file_error")
  }
  tryCatch(readBin(path, "raw", file.size(path)),
    error = function(e) fail(paste0(file, ": ", conditionMessage(e)), "approxsvm_file_error"),
    warning = function(w) fail(paste0(file, ": ", conditionMessage(w)), "approxsvm_file_error"))
}

# Opens the bytes again if the pointer came from another process.
reopen <- function(model, name = "the model") {
  raise_failure(.Call(C_open_model, model$pointer, model$bytes), name)
}

chosen_columns <- function(columns, names, n) {
  if (is.null(columns)) return(names)
  if (!is.character(columns) || length(columns) != n || anyNA(columns) || anyDuplicated(columns)) {
    fail(sprintf("columns must be %d different names, one for each feature of the model, not %s", n, shown(columns)),
      "approxsvm_input_error")
  }
  if (!is.null(names) && !identical(columns, names)) {
    fail("columns: the model has names for its features: leave them out", "approxsvm_input_error")
  }
  columns
}

# The level of each model label: labels in LIBSVM files are the level codes 1, 2, ...
codes_of_levels <- function(labels, levels) {
  if (anyNA(levels) || anyDuplicated(levels)) {
    fail(sprintf("levels must be different texts, not %s", shown(levels)), "approxsvm_input_error")
  }
  codes <- match(labels, as.character(seq_along(levels)))
  if (length(labels) != length(levels) || anyNA(codes)) {
    fail(sprintf("%d levels are given for labels 1 to %d, but the labels of the model are %s", length(levels),
      length(levels), shown(labels)), "approxsvm_input_error")
  }
  codes
}

print.asvm_model <- function(x, ...) {
  reopen(x)
  about <- .Call(C_describe, x$pointer)
  cat(sprintf("%s model for %s, %d features, %.1f KB, instruction set %s\n", x$mode, sub("_", "-", x$task),
    as.integer(x$n_features), length(x$bytes) / 1024, about$target))
  if (!is.null(x$columns)) cat("columns:", shown(x$columns), "\n")
  if (length(x$labels)) cat("classes:", shown(x$labels), "\n")
  if (x$n_probabilities > 0) cat("with probabilities\n")
  invisible(x)
}
