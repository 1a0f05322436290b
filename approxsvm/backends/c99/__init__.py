"""Export of artifacts to C99 headers for microcontrollers."""
