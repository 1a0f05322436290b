# A synthetic scene of 60 x 80 pixels with three bands and a soil map, and a table of pixels with known cover.
scene_bands <- function(rows = 60, columns = 80) {
  at <- expand.grid(x = seq(0, 1, length.out = columns), y = seq(0, 1, length.out = rows))
  set.seed(1)
  water <- at$y > 0.6 + 0.2 * sin(6 * at$x)
  forest <- !water & (at$x - 0.3)^2 + (at$y - 0.3)^2 < 0.06
  noise <- function(sd) rnorm(nrow(at), sd = sd)
  data.frame(
    red = 800 - 500 * water - 400 * forest + noise(350),
    nir = 2500 - 2200 * water + 1200 * forest + noise(500),
    swir = 1900 - 1800 * water - 600 * forest + noise(350),
    soil = factor(ifelse(at$x > 0.5, "sand", "clay")),
    cover = factor(ifelse(water, "water", ifelse(forest, "forest", "field")))
  )
}
set.seed(2)
training <- scene_bands()[sample(4800, 400), ]
