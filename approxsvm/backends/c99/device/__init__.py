"""Evaluation of rows in float32 on a device: values and error bounds."""
