"""Benchmarks of speed, accuracy and size against peers: ``python -m benchmarks`` from the repository root.

This command repeats the tables in Claesen et al. 2014, "Fast Prediction with SVM Models Containing RBF Kernels".
``python -m benchmarks.NAME --help`` describes another experiment and its options.
Every answer is checked before it is timed. Times are medians; ratios within one run are more reliable than times.
"""
