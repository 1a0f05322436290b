"""How many threads an `n_jobs` means."""

from __future__ import annotations

import os


def n_threads(n_jobs: int | None) -> int:
    """Number of threads that `n_jobs` asks for, by joblib's rules."""
    if n_jobs is None or n_jobs == 1:
        return 1
    try:
        from joblib import effective_n_jobs
    except ImportError:  # NumPy alone is enough to predict
        return max(1, all_threads() + 1 + n_jobs) if n_jobs < 0 else n_jobs
    return int(effective_n_jobs(n_jobs))


def all_threads() -> int:
    """Number of processors that this process may use."""
    try:
        from joblib import cpu_count
    except ImportError:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return int(cpu_count())
