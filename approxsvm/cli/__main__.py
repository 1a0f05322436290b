"""``python -m approxsvm.cli``, the same as ``approxsvm``."""

from approxsvm.cli import main

main(prog_name="approxsvm")
