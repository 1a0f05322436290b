predict.asvm_model <- function(object, newdata, type = c("class", "value", "probability", "certified"),
                               on_error = c("stop", "NA"), threads = 1L, ...) {
  outputs <- c("class", "value", "probability", "certified")
  if (missing(type) && object$task == "regression") type <- "value"
  if (...length()) {
    fail(sprintf("there is no argument %s; type chooses the answers", shown(c(names(list(...)), "without a name")[1L])),
      "approxsvm_input_error")
  }
  type <- one_of(type, outputs, "type")
  on_error <- one_of(on_error, c("stop", "NA"), "on_error")
  if (!is.numeric(threads) || length(threads) != 1L || !(threads %in% 1:1024)) {
    fail("threads must be a number from 1 to 1024", "approxsvm_input_error")
  }
  reopen(object)
  if (type == "class" && !length(object$labels)) {
    fail("a regression has no classes: use type = \"value\"", "approxsvm_input_error")
  }
  if (type == "probability" && object$n_probabilities == 0) {
    fail("the model has no probabilities", "approxsvm_input_error")
  }
  rows <- columns_of(object, newdata)
  found <- .Call(C_evaluate, object$pointer, rows$numbers, rows$missing, match(type, outputs) - 1L, on_error == "NA",
    as.integer(threads))
  raise_failure(found, columns = rows$names, texts_at = rows$texts_at)
  if (type == "class") return(classes_of(object, found))
  per_row <- switch(type, value = object$n_values, probability = object$n_probabilities, object$n_targets)
  names <- if (type == "probability" && per_row == length(object$labels)) object$labels[object$codes]
  if (type == "value" && length(object$pairs) == per_row) names <- object$pairs
  if (per_row == 1 && is.null(names)) return(found)
  matrix(found, length(rows$missing), per_row, dimnames = if (!is.null(names)) list(NULL, names))
}

# Like match.arg, with our conditions.
one_of <- function(given, choices, name) {
  if (identical(given, choices)) return(choices[1L])
  if (!is.character(given) || length(given) != 1L || !given %in% choices) {
    fail(sprintf("%s must be one of %s", name, paste(quoted(choices), collapse = ", ")), "approxsvm_input_error")
  }
  given
}

classes_of <- function(model, positions) {
  as_factor <- function(k) structure(model$codes[k], levels = model$labels, class = "factor")
  if (model$n_targets == 1) return(as_factor(positions))
  n <- length(positions) / model$n_targets
  each <- split(positions, rep(seq_len(model$n_targets), each = n))
  as.data.frame(lapply(setNames(each, paste0("target", seq_along(each))), as_factor))
}
