"""Predictions for pictures: raster files of any size through GDAL, and arrays of pixels."""
