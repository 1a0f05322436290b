# Trains the vignette's e1071 model in the current folder and writes scene.svm; its argument is the package.
package <- commandArgs(TRUE)
for (file in c("R/conditions.R", "R/write.R", "inst/extdata/scene.R")) source(file.path(package, file))
write_libsvm(e1071::svm(cover ~ ., training, gamma = 0.5), "scene.svm")
