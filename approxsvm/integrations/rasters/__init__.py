"""Predictions for images: raster files of any size, read by GDAL, and arrays of pixels."""
