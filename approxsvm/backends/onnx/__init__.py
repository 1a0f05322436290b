"""ONNX backend, which exports artifacts as graphs of standard operators."""
