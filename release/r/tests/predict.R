# Answers and errors of the shipped models.
library(approxsvm)
extdata <- function(name) system.file("extdata", name, package = "approxsvm", mustWork = TRUE)
failure <- function(expression, class, text) {
  found <- tryCatch({ expression; NULL }, approxsvm_error = identity)
  stopifnot(inherits(found, class), grepl(text, conditionMessage(found), fixed = TRUE))
  found
}

# --- names, categories and missing values
model <- asvm_load(extdata("loans.asvm"))
loans <- data.frame(
  debt = c(0, 2L, -1, NA, 0), other = 1, job = factor(c("baker", "smith", "gr\u00f6\u00dfer", "smith", NA)),
  age = c(30, 50, NA, 40, 40)
)
classes <- predict(model, loans)
stopifnot(
  is.factor(classes), identical(levels(classes), c("does not", "pays")),
  !is.na(classes[1:3]), is.na(classes[4:5]),        # an imputer for the age, none for debt and job
  classes[2] == "pays", identical(is.na(predict(model, loans, "value")), is.na(classes)),
  identical(is.na(predict(model, loans, type = "certified")), is.na(classes))
)
as_text <- transform(loans, job = as.character(job), debt = as.integer(debt))
levels_in_other_order <- transform(loans, job = factor(job, rev(levels(job))))
stopifnot(identical(predict(model, as_text), classes), identical(predict(model, levels_in_other_order), classes))
stopifnot(identical(predict(model, loans[5:1, 4:1]), classes[5:1]))
stopifnot(length(predict(model, loans[0, ])) == 0, length(predict(model, loans[0, ], "value")) == 0)

failure(predict(model, loans[-1]), "approxsvm_input_error", "there is no column 'debt', only 'other', 'job', 'age'")
failure(predict(model, cbind(loans, age = 1)), "approxsvm_input_error", "several columns 'age'")
failure(predict(model, transform(loans, job = 1)), "approxsvm_input_error", "column 'job' is of class numeric")
failure(predict(model, transform(loans, age = job)), "approxsvm_input_error", "column 'age' is of class factor")
failure(predict(model, transform(loans, age = Sys.time())), "approxsvm_input_error", "'age' is of class POSIXct")
failure(predict(model, 1:3), "approxsvm_input_error", "not integer")
failure(predict(model, loans, "label"), "approxsvm_input_error", "type must be one of 'class'")
failure(predict(model, loans, "probability"), "approxsvm_input_error", "no probabilities")
failure(predict(model, loans, threads = 0), "approxsvm_input_error", "threads")

# --- rows that the model rejects
strange <- transform(loans, job = "astronaut")
stopifnot(failure(predict(model, strange), "approxsvm_row_error", "row 1: ")$row == 1)
failure(predict(model, strange), "approxsvm_row_error", "the texts of the row are 'astronaut'")
infinite <- transform(loans, debt = c(0, 2, Inf, 1, 0))
stopifnot(failure(predict(model, infinite), "approxsvm_row_error", "row 3, 'debt' is infinite")$row == 3)
stopifnot(identical(which(is.na(predict(model, infinite, on_error = "NA"))), c(3L, 5L)))

# --- rows by the thousand, with gaps, as for a raster
many <- loans[rep(1:5, 80001), ]
stopifnot(identical(as.integer(predict(model, many, threads = 2)), rep(as.integer(classes), 80001)))

# --- columns by position, levels
scene <- extdata("scene.asvm")
pixels <- matrix(c(300, 300, 100, 1, 0, 800, 2500, 1900, 0, 1), 2, byrow = TRUE)
named <- as.data.frame(pixels)
names(named) <- c("red", "nir", "swir", "clay", "sand")
model <- asvm_load(scene, levels = c("field", "forest", "water"))
stopifnot(identical(as.character(predict(model, pixels)), c("water", "field")))
warned <- tryCatch(predict(model, named), approxsvm_columns_by_position = identity)
stopifnot(inherits(warned, "warning"), grepl("'red', 'nir'", conditionMessage(warned)))
model <- asvm_load(scene, levels = c("field", "forest", "water"), columns = names(named))
stopifnot(identical(as.character(predict(model, named[5:1])), c("water", "field")))
stopifnot(identical(dim(predict(model, named, "value")), c(2L, 3L)), identical(dim(predict(model, named[0, ], "value")), c(0L, 3L)))
unnamed <- asvm_load(scene)
failure(predict(unnamed, pixels / c(1, 0)), "approxsvm_row_error", "row 2, column 1 is infinite")
failure(predict(unnamed, pixels, probability = TRUE), "approxsvm_input_error", "no argument 'probability'")
failure(predict(unnamed, pixels + 0i), "approxsvm_input_error", "not matrix of type complex")
failure(asvm_load(scene, levels = c("a", "b", "b")), "approxsvm_input_error", "levels must be different")
failure(predict(unnamed, pixels[, 1:4]), "approxsvm_input_error", "4 columns, but the model has 5")
numbered <- setNames(named, c("b1", "b3", "b2", "b4", "b5"))
failure(predict(unnamed, numbered), "approxsvm_input_error", "not in order")
failure(asvm_load(scene, levels = c("a", "b")), "approxsvm_input_error", "2 levels are given")
failure(asvm_load(scene, columns = "a"), "approxsvm_input_error", "columns must be 5 different names")

# --- the formula, the levels and the columns of the source
if (requireNamespace("e1071", quietly = TRUE)) {
  source(extdata("scene.R"))
  exact <- e1071::svm(cover ~ ., training, gamma = 0.5)
  failure(write_libsvm(exact, file.path(tempfile(), "x")), "approxsvm_file_error", "x: cannot open file")
  bands <- scene_bands()
  fast <- asvm_load(scene, source = exact)
  stopifnot(identical(predict(fast, bands), unname(predict(exact, bands))))
  values <- attr(predict(exact, bands, decision.values = TRUE), "decision.values")
  stopifnot(identical(colnames(predict(fast, bands, "value")), colnames(values)))
  stopifnot(all.equal(predict(fast, bands, "value"), values, check.attributes = FALSE))
  stopifnot(identical(predict(fast, transform(bands, soil = as.character(soil))), predict(fast, bands)))
  failure(predict(fast, transform(bands, nir = as.character(nir))), "approxsvm_input_error",
    "column 'nir' is of class character, but the model was trained on numbers")
  failure(predict(fast, transform(bands, soil = 1)), "approxsvm_input_error",
    "column 'soil' is of class numeric, but the model was trained on class factor")
  failure(predict(fast, transform(bands, soil = "clay")), "approxsvm_input_error", "factors need the levels of the training")
}

# --- a model in a file of R, and in another process
file <- tempfile()
saveRDS(model, file)
again <- readRDS(file)
stopifnot(identical(predict(again, named), predict(model, named)))
rm(model, again)
invisible(gc())
