"""The piece that every table engine shares: record batch in, record batch out, with pyarrow alone.

It is handed evaluators (evaluator.py) and knows nothing of files and engines.
"""
