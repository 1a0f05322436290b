"""Entry point of ``python -m approxsvm.cli``, which runs the same command as ``approxsvm``."""

from approxsvm.cli import main

if __name__ == "__main__":
    main(prog_name="approxsvm")
