"""Artifacts for other programs: C99 headers, ONNX graphs."""
