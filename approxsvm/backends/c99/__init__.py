"""C99 headers for microcontrollers."""
