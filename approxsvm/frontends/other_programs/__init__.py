"""Model files of other programs than LIBSVM."""
