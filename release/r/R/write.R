# e1071 and kernlab models as LIBSVM files. Labels are the level codes 1, 2, ...

write_libsvm <- function(model, file, data = NULL) {
  if (!is.character(file) || length(file) != 1L || is.na(file)) fail("file must be one path", "approxsvm_input_error")
  parts <- if (inherits(model, "svm")) parts_of_svm(model) else if (inherits(model, "ksvm")) parts_of_ksvm(model)
  if (is.null(parts)) {
    fail(sprintf("model must be an svm of e1071 or a ksvm of kernlab, not %s", paste(class(model), collapse = ", ")),
      "approxsvm_input_error")
  }
  vectors <- parts$vectors
  rows <- lines_of(parts$coefficients, vectors)
  head <- c(paste("svm_type", parts$type), parts$kernel, paste("nr_class", max(2L, length(parts$n_vectors))),
    paste("total_sv", nrow(vectors)), line_of("rho", parts$rho), line_of("label", parts$labels, as.character),
    line_of("probA", parts$prob_a), line_of("probB", parts$prob_b), line_of("nr_sv", parts$n_vectors, as.character))
  write_lines(c(head, "SV", rows), file)
  write_lines(paste(exactly(parts$scales[, 1L]), exactly(parts$scales[, 2L])), paste0(file, ".scale"))
  if (grepl("svr", parts$type)) {
    target <- if (is.null(parts$y_scale)) list(0, 1) else parts$y_scale
    write_lines(paste(exactly(target[[1L]]), exactly(target[[2L]])), paste0(file, ".yscale"))
  }
  if (!is.null(data)) {
    rows <- sample_rows(model, data, ncol(vectors))
    write_lines(lines_of(matrix(0, nrow(rows)), rows), paste0(file, ".rows"))
  }
  invisible(model)
}

# Lines in LIBSVM files: numbers, then the numbered columns of a row.
lines_of <- function(numbers, rows) {
  columns <- matrix(exactly(rows), nrow(rows))
  columns[] <- paste0(col(columns), ":", columns)
  apply(cbind(matrix(exactly(numbers), nrow(rows)), columns), 1L, paste, collapse = " ")
}

# The model's columns for user rows, without rows that contain NA.
sample_rows <- function(model, data, n_features) {
  known <- names_of_source(model)
  rows <- if (is.null(known$terms)) as.matrix(data) else columns_of_terms(known, data)
  if (!is.null(known$columns) && all(known$columns %in% colnames(rows))) rows <- rows[, known$columns, drop = FALSE]
  if (!is.numeric(rows) || ncol(rows) != n_features) {
    fail(sprintf("data has %d columns of type %s, but the model has %d features of numbers", ncol(rows), typeof(rows),
      n_features), "approxsvm_input_error")
  }
  rows[rowSums(!is.finite(rows)) == 0, , drop = FALSE]
}

write_lines <- function(lines, file) {
  refuse <- function(condition) fail(paste0(file, ": ", conditionMessage(condition)), "approxsvm_file_error")
  tryCatch(writeLines(lines, file), error = refuse, warning = refuse) # a failure after a warning is not caught twice
}

line_of <- function(name, numbers, text = exactly) if (length(numbers)) paste(c(name, text(numbers)), collapse = " ")

kernel_of <- function(type, degree = NULL, gamma = NULL, coef0 = NULL) {
  c(paste("kernel_type", type), line_of("degree", degree, as.character), line_of("gamma", gamma), line_of("coef0", coef0))
}

# Centers and scales of all columns; an unscaled column, such as one from a factor, has 0 and 1.
scales_of <- function(n, scaled, x_scale) {
  scales <- matrix(c(0, 1), n, 2L, byrow = TRUE)
  if (!is.null(x_scale)) scales[scaled, ] <- cbind(x_scale[[1L]], x_scale[[2L]])
  scales
}

# --- e1071

parts_of_svm <- function(model) {
  if (!is.matrix(model$SV)) no_vectors()
  with_labels <- model$type < 2
  kernel <- switch(model$kernel + 1, kernel_of("linear"),
    kernel_of("polynomial", model$degree, model$gamma, model$coef0), kernel_of("rbf", gamma = model$gamma),
    kernel_of("sigmoid", gamma = model$gamma, coef0 = model$coef0))
  list(type = c("c_svc", "nu_svc", "one_class", "epsilon_svr", "nu_svr")[model$type + 1], kernel = kernel,
    vectors = unname(model$SV), coefficients = unname(as.matrix(model$coefs)), rho = model$rho,
    labels = if (with_labels) model$labels, n_vectors = if (with_labels) model$nSV,
    prob_a = if (with_labels && model$compprob) model$probA, prob_b = if (with_labels && model$compprob) model$probB,
    scales = scales_of(ncol(model$SV), model$scaled, model$x.scale), y_scale = model$y.scale)
}

# --- kernlab

parts_of_ksvm <- function(model) {
  if (!requireNamespace("kernlab", quietly = TRUE)) fail("models of ksvm need the package kernlab", "approxsvm_input_error")
  type <- kernlab::type(model)
  types <- c("C-svc" = "c_svc", "nu-svc" = "nu_svc", "C-bsvc" = "c_svc", "eps-svr" = "epsilon_svr",
    "nu-svr" = "nu_svr", "eps-bsvr" = "epsilon_svr", "one-svc" = "one_class")
  if (!type %in% names(types)) {
    fail(sprintf("LIBSVM has no type %s; train with one of %s", type, paste(names(types), collapse = ", ")),
      "approxsvm_input_error")
  }
  parts <- if (grepl("svc", type) && type != "one-svc") sums_of_pairs(model) else sum_of_one(model)
  scaling <- kernlab::scaling(model)
  if (!is.list(scaling)) scaling <- NULL
  c(parts, list(type = types[[type]], kernel = kernel_of_ksvm(kernlab::kernelf(model)), y_scale = scaling$y.scale,
    scales = scales_of(ncol(parts$vectors), scaling$scaled, scaling$x.scale)))
}

exactly <- function(numbers) sprintf("%.17g", numbers)

kernel_of_ksvm <- function(kernel) {
  p <- kernlab::kpar(kernel)
  switch(class(kernel)[1L], rbfkernel = kernel_of("rbf", gamma = p$sigma), vanillakernel = kernel_of("linear"),
    polykernel = kernel_of("polynomial", p$degree, p$scale, p$offset),
    tanhkernel = kernel_of("sigmoid", gamma = p$scale, coef0 = p$offset),
    fail(sprintf("LIBSVM has no kernel %s; train with rbfdot, vanilladot, polydot or tanhdot", class(kernel)[1L]),
      "approxsvm_input_error"))
}

sum_of_one <- function(model) {
  vectors <- kernlab::xmatrix(model)
  if (!is.matrix(vectors)) no_vectors()
  list(vectors = vectors, coefficients = matrix(as.numeric(kernlab::coef(model))), rho = kernlab::b(model))
}

no_vectors <- function() {
  fail("the model has no matrix of support vectors: train on a matrix or a data frame", "approxsvm_input_error")
}

# kernlab votes for the second class of a pair if its sum is positive, LIBSVM for the first: signs change. LIBSVM stores
# a support vector once for all pairs of its class; its coefficients, one per other class, are in the order of these
# classes.
sums_of_pairs <- function(model) {
  k <- length(kernlab::lev(model))
  pairs <- combn(k, 2L)
  places <- kernlab::alphaindex(model)
  matrices <- kernlab::xmatrix(model)
  if (!is.list(matrices) || !all(vapply(matrices, is.matrix, TRUE))) no_vectors()
  coefs <- lapply(kernlab::coef(model), function(c) -as.numeric(c))
  own <- lapply(seq_len(k), function(class) sort(unique(unlist(lapply(which(colSums(pairs == class) > 0), function(p) {
    places[[p]][if (pairs[1L, p] == class) coefs[[p]] > 0 else coefs[[p]] < 0]
  })))))
  rows <- unlist(own)
  class_of <- rep(seq_len(k), lengths(own))
  vectors <- matrix(0, length(rows), ncol(matrices[[1L]]))
  coefficients <- matrix(0, length(rows), k - 1L)
  for (p in seq_len(ncol(pairs))) {
    to <- match(places[[p]], rows)
    vectors[to, ] <- matrices[[p]]
    first <- class_of[to] == pairs[1L, p]
    coefficients[cbind(to, ifelse(first, pairs[2L, p] - 1L, pairs[1L, p]))] <- coefs[[p]]
  }
  sigmoids <- kernlab::prob.model(model)
  if (length(sigmoids) != ncol(pairs) || is.null(sigmoids[[1L]])) sigmoids <- list()
  list(vectors = vectors, coefficients = coefficients, rho = -kernlab::b(model), labels = seq_len(k),
    n_vectors = lengths(own), prob_a = vapply(sigmoids, function(s) s$A, 0), prob_b = -vapply(sigmoids, function(s) s$B, 0))
}
