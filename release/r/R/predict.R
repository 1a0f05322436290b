# The labels of the rows of a numeric matrix or data frame with four columns, and whether each is proven.
predict_flowers <- function(rows) {
  rows <- as.matrix(rows)
  if (!is.numeric(rows) || ncol(rows) != 4L) stop("rows must have four columns of numbers")
  storage.mode(rows) <- "double"
  .Call(C_predict_flowers, rows)
}
