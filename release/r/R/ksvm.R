# Models of kernlab as files of LIBSVM.

write_ksvm <- function(model, file, scale_file = paste0(file, ".scale"), yscale_file = paste0(file, ".yscale")) {
  if (!inherits(model, "ksvm")) fail("model must be a ksvm of kernlab", "approxsvm_input_error")
  if (!requireNamespace("kernlab", quietly = TRUE)) fail("write_ksvm needs the package kernlab", "approxsvm_input_error")
  type <- kernlab::type(model)
  types <- c("C-svc" = "c_svc", "nu-svc" = "nu_svc", "C-bsvc" = "c_svc", "eps-svr" = "epsilon_svr",
    "nu-svr" = "nu_svr", "eps-bsvr" = "epsilon_svr", "one-svc" = "one_class")
  if (!type %in% names(types)) {
    fail(sprintf("LIBSVM has no type %s; train with one of %s", type, paste(names(types), collapse = ", ")),
      "approxsvm_input_error")
  }
  head <- c(paste("svm_type", types[[type]]), kernel_lines(kernlab::kernelf(model)))
  sums <- if (type %in% c("C-svc", "nu-svc", "C-bsvc")) sums_of_pairs(model) else sum_of_one(model)
  vectors <- vapply(seq_len(ncol(sums$vectors)), function(j) sprintf("%d:%s", j, exactly(sums$vectors[, j])),
    character(nrow(sums$vectors)))
  dim(vectors) <- dim(sums$vectors)
  coefficients <- matrix(exactly(sums$coefficients), nrow(sums$vectors))
  rows <- apply(cbind(coefficients, vectors), 1L, paste, collapse = " ")
  writeLines(c(head, sums$lines, "SV", rows), file)
  write_scales(model, ncol(sums$vectors), scale_file, yscale_file)
  invisible(model)
}

exactly <- function(numbers) sprintf("%.17g", numbers)

kernel_lines <- function(kernel) {
  p <- kernlab::kpar(kernel)
  switch(class(kernel)[1L],
    rbfkernel = c("kernel_type rbf", paste("gamma", exactly(p$sigma))),
    vanillakernel = "kernel_type linear",
    polykernel = c("kernel_type polynomial", paste("degree", p$degree), paste("gamma", exactly(p$scale)),
      paste("coef0", exactly(p$offset))),
    tanhkernel = c("kernel_type sigmoid", paste("gamma", exactly(p$scale)), paste("coef0", exactly(p$offset))),
    fail(sprintf("LIBSVM has no kernel %s; train with rbfdot, vanilladot, polydot or tanhdot", class(kernel)[1L]),
      "approxsvm_input_error"))
}

sum_of_one <- function(model) {
  vectors <- kernlab::xmatrix(model)
  if (!is.matrix(vectors)) no_vectors()
  list(vectors = vectors, coefficients = as.numeric(kernlab::coef(model)),
    lines = c("nr_class 2", paste("total_sv", nrow(vectors)), paste("rho", exactly(kernlab::b(model)))))
}

no_vectors <- function() {
  fail("the model has no support vectors: train on rows, not on a kernel matrix or a list", "approxsvm_input_error")
}

# kernlab votes for the second class of a pair where its sum is positive, LIBSVM for the first: signs change. LIBSVM
# stores a support vector once for all pairs of its class; its coefficient for each other class is in that one's order.
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
  list(vectors = vectors, coefficients = coefficients,
    lines = class_lines(model, -kernlab::b(model), lengths(own)))
}

# Levels that are whole numbers are the labels; others are labels 1, 2, ...
class_lines <- function(model, rho, n_vectors) {
  levels <- kernlab::lev(model)
  whole <- all(grepl("^(0|-?[1-9][0-9]{0,8})$", as.character(levels)))
  sigmoids <- kernlab::prob.model(model)
  has_sigmoids <- length(sigmoids) == length(rho) && !is.null(sigmoids[[1L]])
  c(paste("nr_class", length(levels)), paste("total_sv", sum(n_vectors)),
    paste(c("rho", exactly(rho)), collapse = " "),
    paste(c("label", if (whole) as.character(levels) else seq_along(levels)), collapse = " "),
    if (has_sigmoids) {
      c(paste(c("probA", exactly(vapply(sigmoids, function(s) s$A, 0))), collapse = " "),
        paste(c("probB", exactly(-vapply(sigmoids, function(s) s$B, 0))), collapse = " "))
    },
    paste(c("nr_sv", n_vectors), collapse = " "))
}

# A line for each column of the rows, 0 1 for those that are not scaled, such as the columns of factors.
write_scales <- function(model, n, scale_file, yscale_file) {
  scaling <- kernlab::scaling(model)
  scales <- matrix(c(0, 1), n, 2L, byrow = TRUE)
  if (is.list(scaling)) scales[scaling$scaled, ] <- cbind(scaling$x.scale[[1L]], scaling$x.scale[[2L]])
  writeLines(paste(exactly(scales[, 1L]), exactly(scales[, 2L])), scale_file)
  target <- if (is.list(scaling)) scaling$y.scale
  if (kernlab::type(model) %in% c("eps-svr", "nu-svr", "eps-bsvr")) {
    if (is.null(target)) target <- list(0, 1)
    writeLines(paste(exactly(target[[1L]]), exactly(target[[2L]])), yscale_file)
  }
}
