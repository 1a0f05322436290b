"""Exports of artifacts to other formats: C99 headers and ONNX graphs."""
