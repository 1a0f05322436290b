"""Exports of artifacts to C99 headers, C++ headers and ONNX graphs."""
