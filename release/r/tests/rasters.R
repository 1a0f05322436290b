# terra and stars rasters, with no-data pixels.
library(approxsvm)
path <- system.file("extdata", "scene.asvm", package = "approxsvm", mustWork = TRUE)
names <- c("red", "nir", "swir", "clay", "sand")
model <- asvm_load(path, levels = c("field", "forest", "water"), columns = names)
set.seed(1)
pixels <- data.frame(runif(600, 0, 900), runif(600, 0, 3000), runif(600, 0, 2000), 0:1, 1:0)
names(pixels) <- names
pixels$nir[c(1, 77)] <- NA
classes <- predict(model, pixels)
stopifnot(sum(is.na(classes)) == 2)
if (requireNamespace("terra", quietly = TRUE)) {
  raster <- terra::rast(nrows = 20, ncols = 30, nlyrs = 5, vals = as.matrix(pixels), names = names)
  refused <- tryCatch(predict(model, raster), approxsvm_input_error = conditionMessage)
  stopifnot(grepl("not SpatRaster of type S4; predict(raster, model) takes rasters", refused, fixed = TRUE))
  found <- terra::predict(raster, model)
  stopifnot(identical(as.character(terra::values(found, dataframe = TRUE)[[1]]), as.character(classes)))
  stopifnot(identical(terra::levels(found)[[1]][[2]], levels(classes)))
  values <- terra::predict(raster, model, type = "value")
  stopifnot(all.equal(unname(terra::values(values)), unname(predict(model, pixels, "value"))))
  stopifnot(terra::nlyr(terra::predict(raster, model, type = "certified")) == 1)
}
if (requireNamespace("stars", quietly = TRUE)) {
  cube <- stars::st_as_stars(lapply(pixels, matrix, 30, 20))
  found <- predict(cube, model, drop_dimensions = TRUE)
  stopifnot(identical(as.character(found[[1]]), as.character(classes)))
}
