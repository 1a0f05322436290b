# Trains the e1071 model of the vignette in the current folder: scene.svm and scene.scale.
library(e1071)
source("scene.R")
model <- svm(cover ~ ., training, gamma = 0.5)
write.svm(model, "scene.svm", "scene.unused", tempfile())
scale <- matrix(c(0, 1), ncol(model$SV), 2, byrow = TRUE)
scale[model$scaled, ] <- do.call(cbind, model$x.scale)
write.table(scale, "scene.scale", row.names = FALSE, col.names = FALSE)
