"""Values and bounds of rows as a device with float32 computes them."""
