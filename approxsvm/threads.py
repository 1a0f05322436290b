"""How many threads an `n_jobs` means."""

from __future__ import annotations


def n_threads(n_jobs: int | None) -> int:
    """Number of threads that `n_jobs` asks for, by joblib's rules."""
    if n_jobs is None or n_jobs == 1:
        return 1
    from joblib import effective_n_jobs

    return int(effective_n_jobs(n_jobs))


def all_threads() -> int:
    """Number of processors that this process may use."""
    from joblib import cpu_count

    return int(cpu_count())
