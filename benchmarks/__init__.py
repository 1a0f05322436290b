"""Speed, accuracy and size against peers: ``python -m benchmarks`` from the repository root.

Measures the tables of Claesen et al. 2014, "Fast Prediction with SVM Models Containing RBF Kernels", again.
``python -m benchmarks.NAME --help`` says what another experiment measures, and its options.
Every answer is checked before it is timed, times are medians, and what counts are ratios within one run.
"""
