"""Models and options sent to the workers of a cluster; each process opens a model once."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Any
from weakref import WeakValueDictionary

from approxsvm.errors import ApproxSVMError, ArtifactError
from approxsvm.integrations.arrow.batches import OnError, Scorer
from approxsvm.integrations.scoring.folders import checksum
from approxsvm.runtime.evaluator import Evaluator, artifact_of

_MOST_OPEN = 8  # maximum number of jobs whose models stay open in a worker
_open_jobs: OrderedDict[Any, Scorer] = OrderedDict()
# Models by checksum, shared by jobs with different outputs or columns.
_open_models: WeakValueDictionary[str, Evaluator] = WeakValueDictionary()
_lock = threading.Lock()


@dataclass(frozen=True)
class Job:
    """Models, identified by checksums, and the options for `Scorer`."""

    checksums: tuple[tuple[str, str], ...]  # name and SHA-256 of each artifact
    outputs: tuple[str, ...] | None
    keep: tuple[str, ...]
    columns: tuple[str, ...] | None
    on_error: OnError
    version: str  # version of approxsvm that created the job
    # The artifacts by name; empty if they are sent separately.
    contents: dict[str, bytes] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(
        cls,
        model: Any,
        outputs: Sequence[str] | None,
        keep: Sequence[str],
        columns: Sequence[str] | None,
        on_error: OnError,
    ) -> "Job":
        """Create a job from a model or a mapping of names to models."""
        models = model if isinstance(model, Mapping) else {"model": model}
        contents = {str(name): artifact_of(one).data for name, one in models.items()}
        checksums = tuple((name, checksum(data)) for name, data in contents.items())
        wanted, chosen = (None if names is None else tuple(names) for names in (outputs, columns))
        return cls(checksums, wanted, tuple(keep), chosen, on_error, version("approxsvm"), contents)

    @property
    def token(self) -> str:
        """Checksum over all artifacts."""
        return checksum(repr(self.checksums).encode())

    def without_contents(self) -> "Job":
        """Return the job without its artifacts."""
        return replace(self, contents={})

    def scorer(self, contents: Callable[[], Mapping[str, bytes]]) -> Scorer:
        """Return this job's scorer, which is opened by the first call in a process.

        Raises an error if the version or a checksum differs. The function `contents` returns the artifacts by name, and
        is called only if an artifact has to be opened.
        """
        installed = version("approxsvm")
        if installed != self.version:
            raise ApproxSVMError(f"this worker has approxsvm {installed}, but the job was made by {self.version}")
        key = self.without_contents()
        with _lock:
            if key not in _open_jobs:
                _open_jobs[key] = self._opened(contents)
            _open_jobs.move_to_end(key)
            while len(_open_jobs) > _MOST_OPEN:
                _open_jobs.popitem(last=False)
            return _open_jobs[key]

    def _opened(self, contents: Callable[[], Mapping[str, bytes]]) -> Scorer:
        evaluators: dict[str, Evaluator] = {}
        artifacts: Mapping[str, bytes] = {}
        for name, digits in self.checksums:
            evaluator = _open_models.get(digits)
            if evaluator is None:
                artifacts = artifacts or contents()
                if checksum(artifacts[name]) != digits:
                    raise ArtifactError(
                        f"the artifact of {name} has the checksum {checksum(artifacts[name])}, but the job has {digits}"
                    )
                evaluator = _open_models[digits] = Evaluator(artifact_of(artifacts[name]))
            evaluators[name] = evaluator
        return Scorer(evaluators, outputs=self.outputs, keep=self.keep, columns=self.columns, on_error=self.on_error)
