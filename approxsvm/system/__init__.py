"""Files, packages, threads and terminals: the package's use of the operating system."""
