# Errors and warnings as conditions with a class.

fail <- function(message, class = NULL, row = NULL) {
  stop(structure(class = c(class, "approxsvm_error", "error", "condition"),
    list(message = message, call = NULL, row = row)))
}

# Raises the failures reported by the library. Its rows and columns count from 0, R's from 1.
raise_failure <- function(found, name = NULL, columns = NULL, texts_at = NULL) {
  if (!inherits(found, "asvm_failure")) return(found)
  class <- "approxsvm_input_error"
  if (found$status %in% 10:20) class <- "approxsvm_file_error"
  if (found$status %in% 30:36) class <- "approxsvm_row_error"
  if (found$status %in% 2:5) class <- NULL
  message <- found$message
  if (found$row > 0) {
    message <- sub("^row [0-9]+", paste("row", format(found$row, scientific = FALSE)), message)
    place <- regmatches(message, regexpr("column [0-9]+", message))
    if (length(place)) {
      column <- as.integer(sub("column ", "", place)) + 1L
      message <- sub(place, if (is.null(columns)) paste("column", column) else quoted(columns[column]), message, fixed = TRUE)
    }
  }
  if (found$row > 0 && found$status != 30L && length(texts <- texts_at(found$row))) {
    message <- sprintf("%s; the texts of the row are %s", message, shown(texts))
  }
  if (!is.null(name)) message <- paste0(name, ": ", message)
  fail(message, class, if (found$row > 0) found$row)
}

warn_by_position <- function(names) {
  warning(structure(class = c("approxsvm_columns_by_position", "warning", "condition"), list(
    message = sprintf(paste("the model has no names for its features: by position, the columns %s are taken for",
      "features 1 to %d; asvm_load(file, columns = ...) names them"), shown(names), length(names)), call = NULL)))
}

quoted <- function(names) paste0("'", names, "'")

shown <- function(names) {
  if (length(names) > 20L) return(paste0(paste(quoted(names[1:3]), collapse = ", "), ", ..., ", quoted(names[length(names)])))
  paste(quoted(names), collapse = ", ")
}
