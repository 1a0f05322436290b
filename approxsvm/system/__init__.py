"""Files, packages, threads and terminals: where the package meets the machine it runs on."""
