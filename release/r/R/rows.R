# User rows as one numeric vector per feature.

# Takes columns by name if the model has names, else by position.
columns_of <- function(model, newdata) {
  if (is.matrix(newdata)) {
    if (!(is.numeric(newdata) || is.logical(newdata) || is.character(newdata))) wrong_rows(newdata)
  } else if (!is.data.frame(newdata)) {
    wrong_rows(newdata)
  }
  if (!is.null(model$terms)) newdata <- columns_of_terms(model, newdata)
  chosen <- chosen_places(model, if (is.matrix(newdata)) colnames(newdata) else names(newdata), ncol(newdata))
  take <- if (is.matrix(newdata)) function(k) newdata[, k] else function(k) .subset2(newdata, k)
  names <- if (is.null(model$columns)) colnames(newdata)[chosen] else model$columns
  has_texts <- model$n_categories > 0
  columns <- lapply(seq_along(chosen), function(j) {
    column <- take(chosen[j])
    name <- if (is.null(names)) as.character(chosen[j]) else names[j]
    list(numbers = if (has_texts[j]) codes_of(model, j, column, name) else numbers_of(column, name), na = is.na(column))
  })
  texts_at <- function(row) vapply(chosen[has_texts], function(k) as.character(take(k)[row]), "")
  list(numbers = lapply(columns, `[[`, "numbers"), missing = Reduce(`|`, lapply(columns, `[[`, "na")), names = names,
    texts_at = texts_at)
}

# Columns of the formula with which the source was trained. Rows with NA are kept.
columns_of_terms <- function(model, newdata) {
  newdata <- as.data.frame(newdata)
  absent <- setdiff(all.vars(model$terms), names(newdata)) # model.frame would look for them outside
  if (length(absent)) {
    fail(sprintf("there is no column %s, only %s", shown(absent), shown(names(newdata))), "approxsvm_input_error")
  }
  levels <- "factors need the levels of the training data"
  refuse <- function(e) {
    fail(sprintf("newdata does not suit the formula: %s; %s", conditionMessage(e), levels), "approxsvm_input_error")
  }
  frame <- tryCatch(model.frame(model$terms, newdata, na.action = na.pass), error = refuse)
  given <- vapply(frame, .MFclass, "")
  trained <- attr(model$terms, "dataClasses")[names(given)]
  for (j in which((given == "numeric") != (trained == "numeric"))) { # a text is a category otherwise
    fail(sprintf("column '%s' is of class %s, but the model was trained on %s", names(given)[j], class(frame[[j]])[1L],
      if (trained[j] == "numeric") "numbers" else paste("class", trained[j])), "approxsvm_input_error")
  }
  columns <- tryCatch(model.matrix(model$terms, frame), error = refuse)
  unknown <- setdiff(colnames(columns), c(model$columns, "(Intercept)"))
  if (length(unknown)) {
    fail(sprintf("newdata has columns or levels %s, but the model has %s; %s", shown(unknown), shown(model$columns),
      levels), "approxsvm_input_error")
  }
  unseen <- setdiff(model$columns, colnames(columns))
  if (length(unseen)) {
    fail(sprintf("newdata lacks the columns or levels %s; %s", shown(unseen), levels), "approxsvm_input_error")
  }
  columns
}

wrong_rows <- function(newdata) {
  is_raster <- inherits(newdata, c("SpatRaster", "Raster", "stars"))
  fail(sprintf("newdata must be a data frame or a matrix of numbers, not %s of type %s; %s", class(newdata)[1L],
    typeof(newdata), if (is_raster) "predict(raster, model) takes rasters" else "as.matrix() converts others"),
    "approxsvm_input_error")
}

chosen_places <- function(model, names, n_given) {
  n <- model$n_features
  wanted <- model$columns
  if (is.null(wanted) && !is.null(names)) {
    numbered <- paste0("f", seq_len(n) - 1L)
    if (all(numbered %in% names)) wanted <- numbered
  }
  if (is.null(wanted) || is.null(names)) {
    if (n_given != n) {
      fail(sprintf("newdata has %d columns, but the model has %d features; choose columns", n_given, n),
        "approxsvm_input_error")
    }
    if (!is.null(names)) {
      check_numbers(names)
      warn_by_position(names)
    }
    return(seq_len(n))
  }
  absent <- setdiff(wanted, names)
  if (length(absent)) {
    fail(sprintf("there is no column %s, only %s", shown(absent), shown(names)), "approxsvm_input_error")
  }
  twice <- intersect(wanted, names[duplicated(names)])
  if (length(twice)) fail(sprintf("there are several columns %s", shown(twice)), "approxsvm_input_error")
  match(wanted, names)
}

# Names such as x1, x3, x2 show that the columns are not in feature order.
check_numbers <- function(names) {
  parts <- regmatches(names, regexec("^(.*[^0-9])([0-9]+)$", names))
  if (length(names) < 2L || any(lengths(parts) == 0L)) return(invisible())
  prefixes <- vapply(parts, `[`, "", 2L)
  numbers <- as.numeric(vapply(parts, `[`, "", 3L))
  if (length(unique(prefixes)) == 1L && max(numbers) <= length(names) && is.unsorted(numbers)) {
    fail(sprintf("the columns %s are numbered, but not in order, and the model has no names; choose columns",
      shown(names)), "approxsvm_input_error")
  }
}

numbers_of <- function(column, name) {
  plain <- is.numeric(column) || (is.logical(column) && !is.object(column))
  if (!plain || inherits(column, "integer64") || NCOL(column) != 1L) {
    fail(sprintf("column '%s' is of class %s, but the model takes numbers", name, paste(class(column), collapse = ", ")),
      "approxsvm_input_error")
  }
  as.double(column)
}

# Codes of the model's categories; an unknown text is rejected if the source rejects it.
codes_of <- function(model, j, column, name) {
  if (is.logical(column) && all(is.na(column))) column <- as.character(column)
  if (is.character(column)) column <- factor(column)
  if (!is.factor(column)) {
    fail(sprintf("column '%s' is of class %s, but the model takes texts or a factor", name,
      paste(class(column), collapse = ", ")), "approxsvm_input_error")
  }
  texts <- c(levels(column), NA)
  codes <- .Call(C_codes, model$pointer, j - 1L, texts)
  places <- as.integer(column)
  places[is.na(places)] <- length(texts)
  codes[places]
}
