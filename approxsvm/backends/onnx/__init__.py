"""ONNX graphs of standard operators."""
