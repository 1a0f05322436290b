"""ONNX backend: graphs of standard operators."""
