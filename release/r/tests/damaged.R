# No bytes crash R: truncated artifacts, and artifacts with a changed byte, give errors.
library(approxsvm)
path <- system.file("extdata", "scene.asvm", package = "approxsvm", mustWork = TRUE)
bytes <- readBin(path, "raw", file.size(path))
rejects <- function(bytes) inherits(tryCatch(asvm_load(bytes), approxsvm_file_error = identity), "approxsvm_file_error")
for (n in seq(0, length(bytes) - 1, by = 7)) stopifnot(rejects(bytes[seq_len(n)]))
set.seed(1)
for (place in sample(length(bytes), 500)) {
  damaged <- bytes
  damaged[place] <- xor(damaged[place], as.raw(sample(255, 1)))
  stopifnot(rejects(damaged))
}
stopifnot(rejects(raw(0)), rejects(as.raw(sample(0:255, 5000, TRUE))))
model <- asvm_load(path)
model$bytes <- bytes[1:100]
file <- tempfile()
saveRDS(model, file)
found <- tryCatch(predict(readRDS(file), matrix(0, 1, 5)), approxsvm_file_error = identity)
stopifnot(inherits(found, "approxsvm_file_error"))
nowhere <- tryCatch(asvm_load(tempfile()), approxsvm_file_error = identity)
stopifnot(grepl("no such file", conditionMessage(nowhere)))
