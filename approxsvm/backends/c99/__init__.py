"""C99 header export for microcontrollers."""
