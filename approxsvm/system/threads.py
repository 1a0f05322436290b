"""Number of threads for `n_jobs`."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from functools import cache
from multiprocessing import current_process
from typing import TYPE_CHECKING, Any, Final

from approxsvm.errors import InputError
from approxsvm.system.options import whole_number

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

_MOST_THREADS: Final = 1024  # limit of approxsvm-predict


def n_threads(n_jobs: int | None) -> int:
    """Return the number of threads for `n_jobs`, by joblib's rules; raise InputError if it is invalid or too large."""
    if n_jobs is None:
        return 1
    n_jobs = whole_number(n_jobs, "n_jobs", -_MOST_THREADS, _MOST_THREADS)
    if n_jobs == 0:
        raise InputError("n_jobs is 0, but must be a number of threads, or -1 for all processors")
    if n_jobs == 1:
        return 1
    try:
        from joblib.parallel import get_active_backend
    except ImportError:  # predictions need only NumPy
        pass
    else:
        backend = get_active_backend()[0]
        # In a daemonic process (a multiprocessing or Celery worker), joblib allows only one job, because such a process
        # cannot start others. Threads are allowed there, unless joblib itself has split the work.
        if backend.nesting_level or not current_process().daemon:
            return int(backend.effective_n_jobs(n_jobs))
    return max(1, all_threads() + 1 + n_jobs) if n_jobs < 0 else n_jobs


def all_threads() -> int:
    """Return the number of processors that this process may use."""
    try:
        from joblib import cpu_count
    except ImportError:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return int(cpu_count())


def one_thread_inside(user_api: str | None = None) -> AbstractContextManager[Any]:
    """Limit the thread pools of all libraries, or of one API, to one thread, because this package splits the work."""
    limited: AbstractContextManager[Any] = _thread_pools().limit(limits=1, user_api=user_api)
    return limited


@cache
def _thread_pools() -> ThreadpoolController:
    """Find the thread pools of NumPy, SciPy and scikit-learn only once, because each search reads the memory map."""
    import scipy.linalg  # noqa: F401
    import sklearn.utils  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
