"""Frontends for model files of programs other than LIBSVM."""
