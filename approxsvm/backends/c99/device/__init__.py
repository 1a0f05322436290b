"""Values and bounds for rows, as computed on a device with float32 arithmetic."""
