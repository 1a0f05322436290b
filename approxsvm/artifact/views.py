"""Typed views of an artifact's bytes, of which the native reader has validated everything except the label dtype."""

import os
import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from approxsvm import _native
from approxsvm.artifact import arrays, packing
from approxsvm.artifact.categories import unpack_categories
from approxsvm.artifact.combination import unpack_combination
from approxsvm.artifact.input_map import unpack_input_map
from approxsvm.artifact.outputs import unpack_outputs
from approxsvm.artifact.sealed import SealedBytes
from approxsvm.errors import ArtifactError, InputError
from approxsvm.frames.dtypes import SAME, RowDtypes
from approxsvm.frames.raw_columns import RawColumns
from approxsvm.frames.text_columns import TextColumn
from approxsvm.frames.texts import TextRows
from approxsvm.ir import schema
from approxsvm.ir.ensembles.combination import Combination
from approxsvm.ir.input_map import InputMap
from approxsvm.ir.outputs import ClassProbability, GaussianDensity, MembersMean, Outputs, SignAlone, class_pairs
from approxsvm.ir.plan import Plan

_HEADER_FIELDS: Final = schema.fields_of("header")
_SECTION_NAMES: Final = {number: name for name, number in schema.SECTION_IDS.items()}
_FILE_BYTES: Final = schema.offset_of("header", "file_bytes")
# Names of the dtypes whose labels are stored as numbers, and as strings.
_NUMBERS: Final = re.compile("[<>|](b1|[iu][1248]|f[248])")
_STRINGS: Final = re.compile(r"[<>](u8|U\d+)")
_FOREIGN: Final = "not an approxsvm artifact: "  # prefix of the native reader's message about a wrong magic number


class RouterLists(NamedTuple):
    """Contents of the section "router" (models/FORMAT.md)."""

    starts: npt.NDArray[np.int64]  # shape (n_groups + 1,); index of each group's first panel in `members`
    members: npt.NDArray[np.uint32]  # shape (ROUTER_WIDTH * n_panels,); index of each slot's center
    # shape (n_group_panels + n_panels, ROUTER_WIDTH, 1 + n_features); half of x'Dx, and -Dx, for the point x in each
    # slot (D is the router's metric); group panels come before member panels
    points: npt.NDArray[np.float32]


class Artifact(SealedBytes):
    """Compiled model as immutable bytes, with a decoded header.

    Parameters
    ----------
    data : bytes
        The contents of an .asvm file.

    Raises
    ------
    ArtifactError
        The bytes violate a rule in models/FORMAT.md; the message names the section, the field, and the found and
        expected values.
    """

    def __init__(self, data: bytes) -> None:
        try:
            self.native = _native.Artifact(data)
        except ArtifactError as error:
            is_foreign = str(error).startswith(_FOREIGN) or len(data) == 0
            description = _native.described_file(bytes(data)) if is_foreign else ""
            if not description:
                raise
            fault = "" if ";" in description else f"; {str(error).removeprefix(_FOREIGN)}"  # advice, if any, says more
            raise ArtifactError(f"{_FOREIGN}{description}{fault}") from None
        if type(data) is bytes:
            self.data = data
        self._describe(memoryview(self.native))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "Artifact":
        """Read and validate an .asvm file; errors name the file."""
        try:
            return cls(_read_aligned(path))
        except ArtifactError as error:
            raise ArtifactError(f"{os.fspath(path)}: {error}") from None

    @classmethod
    def _within(cls, memory: memoryview) -> "Artifact":
        """Return a view of a nested artifact, which the native reader validated together with the outer one."""
        nested = cls.__new__(cls)
        nested._describe(memory)
        return nested

    def _describe(self, memory: memoryview) -> None:
        self._memory = memory
        header: dict[str, Any] = dict(zip(_HEADER_FIELDS, schema.HEADER.unpack_from(memory), strict=True))
        self.header: Mapping[str, Any] = MappingProxyType(header)  # read-only because predictions depend on it
        end = schema.HEADER.size + schema.SECTION.size * header["n_sections"]
        self._sections = {
            _SECTION_NAMES[number]: memory[offset : offset + size]
            for number, _, offset, size in schema.SECTION.iter_unpack(memory[schema.HEADER.size : end])
        }
        self.members = tuple(_members(self._sections["members"])) if header["mode"] == schema.ENSEMBLE else ()
        self.labels  # noqa: B018  # checked here, because the native reader does not check their dtype
        if self.members:  # combine the headers of all members
            header["n_support_vectors"] = sum(int(member.header["n_support_vectors"]) for member in self.members)
            for name in ("tolerance", "degree", "center_kind", "gamma", "max_sv_norm"):
                header[name] = max(member.header[name] for member in self.members)

    def __repr__(self) -> str:
        what = f"{self.task}, {self.n_raw_features} features, {self.mode}, {self.n_bytes:,} bytes"
        return f"<Artifact of {self.source}: {what}>"

    @cached_property
    def data(self) -> bytes:  # type: ignore[override]
        """Contents of the file."""
        return bytes(self._memory)

    @cached_property
    def native(self) -> _native.Artifact:
        """The native core's object for this artifact."""
        return _native.Artifact(self._memory)

    @property
    def n_bytes(self) -> int:
        """Size of the file."""
        return len(self._memory)

    @cached_property
    def labels(self) -> npt.NDArray[Any]:
        """Class labels with the source model's dtype, read-only; empty for other tasks."""
        content, kind, count = self._sections.get("labels", b""), self.header["label_kind"], self.header["n_labels"]
        if kind == schema.NO_LABELS:
            return np.empty(0)
        numbers = "<i8" if kind == schema.INT64 else "<f8"
        labels = _texts(content, count) if kind == schema.TEXT else np.frombuffer(content, numbers).tolist()
        name = self.header["label_dtype"].rstrip(b"\0").decode("latin-1")
        longest = max(map(len, labels)) if kind == schema.TEXT else 0
        for k, label in enumerate(labels):
            if not _holds(name, label, longest):
                raise ArtifactError(f"label_dtype is {name!r}, expected a type that holds label {k} of section labels")
        array = np.array([int(label) for label in labels] if name[1] == "u" else labels, dtype=name)
        array.flags.writeable = False  # all predicted labels come from this array
        return array

    @cached_property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the raw columns; None if the source has none."""
        content = self._sections.get("feature_names")
        return None if content is None else tuple(_texts(content, self.n_raw_features))

    @cached_property
    def outputs(self) -> Outputs:
        """Functions from decision values to labels and probabilities."""
        content = self._sections.get("outputs")
        return Outputs() if content is None else unpack_outputs(content, self.task, self.header["n_labels"])

    @cached_property
    def combination(self) -> Combination:
        """Combination of an ensemble's members; for a single model, a combination that changes nothing."""
        content = self._sections.get("combination")
        return Combination() if content is None else unpack_combination(content)

    @cached_property
    def input_map(self) -> InputMap | None:
        """Map from raw rows to the kernel's rows; None if the kernel takes raw rows."""
        content = self._sections.get("input_map")
        return None if content is None else replace(unpack_input_map(content), texts=self.texts)

    @cached_property
    def texts(self) -> Mapping[int, TextColumn]:
        """Raw string columns by index, read-only; rows contain the string codes."""
        content = self._sections.get("categories")
        return MappingProxyType({} if content is None else unpack_categories(content))

    @property
    def takes_texts(self) -> bool:
        """True if the source begins with a text vectorizer."""
        return "vectorizers" in self._sections

    @cached_property
    def text_rows(self) -> TextRows:
        """Vectorizers at the start of the source that convert documents to rows, if any."""
        return TextRows.read(bytes(self._sections["vectorizers"]), int(self.n_raw_features))

    @cached_property
    def row_dtypes(self) -> RowDtypes:
        """Input dtypes for which the source's predictions change."""
        content = self._sections.get("dtypes")
        return SAME if content is None else RowDtypes.read(bytes(content))

    @cached_property
    def raw_columns(self) -> RawColumns:
        """The raw columns, with a record of those that the model uses."""
        return RawColumns.of(self)

    @property
    def task(self) -> schema.Task:
        """Meaning of the decision values."""
        return schema.TASKS[int(self.header["task"])]

    @property
    def mode(self) -> schema.Mode:
        """Compilation mode; if the members' modes differ, "approximate" if it occurs among them, else "certified"."""
        if not self.members:
            return schema.MODES[int(self.header["mode"])]
        modes = {member.mode for member in self.members}
        return modes.pop() if len(modes) == 1 else "approximate" if "approximate" in modes else "certified"

    @property
    def averages(self) -> bool:
        """True for an ensemble that averages its members' probabilities and has no decision values."""
        return isinstance(self.outputs.probability, MembersMean)

    @property
    def has_labels_alone(self) -> bool:
        """True for an ensemble that votes or has several targets, and therefore predicts only labels."""
        return self.combination.columns != "numbers"

    @property
    def counts_votes(self) -> bool:
        """True for an ensemble that votes."""
        return self.combination.columns == "votes"

    @property
    def of_targets(self) -> bool:
        """True for an ensemble whose members predict different targets."""
        return self.combination.columns == "labels"

    @cached_property
    def n_targets(self) -> int:
        """Number of labels per row; each of them is certified separately."""
        if not self.of_targets:
            return 1
        return sum(map(self.combination.n_columns_of, self.members))

    @property
    def has_decision_function(self) -> bool:
        """True if the source has decision values; a calibrated source has only probabilities."""
        probability = self.outputs.probability
        if self.n_decisions == 0 or self.outputs.label_rule == "probability":
            return False
        return probability is None or probability.has_values

    @property
    def why_no_decision_function(self) -> str:
        """Reason why there is no decision function, for an error message."""
        if self.of_targets:
            return "with several targets, the file itself has only labels: each of members has its own values"
        if self.has_labels_alone:
            return (
                "decision values of boosted ensembles, and of bags whose members have values of all classes, are only "
                "available from the estimators of compile() and load(): use those of members"
            )
        if isinstance(self.outputs.probability, SignAlone):
            return "only labels are read from this source, which has no decision function for all of its classes"
        return "labels are those of the largest probability, without a decision function: use the probabilities"

    @property
    def why_no_probabilities(self) -> str:
        """Reason why there are no probabilities, for an error message."""
        if self.of_targets:
            return "with several targets, there are only probabilities if each of members has them"
        if self.has_labels_alone:
            return (
                "probabilities of bags that vote, and of boosted ensembles, are only available from the estimators of "
                "compile() and load(); others have none: compile each of estimators_ separately"
            )
        if isinstance(self.outputs.probability, SignAlone):
            return (
                "only labels are read from this source; compiling would not make the probabilities of a Gaussian "
                "process faster: use the source itself"
            )
        if self.task == "one_class":
            return "the source has no probabilities; LIBSVM models of svm-train -s 2 -b 1 have them"
        return (
            "there are no probabilities: the source has none, or none that can be read; compile a "
            "CalibratedClassifierCV around it, CalibratedClassifierCV(source, ensemble=False).fit(X, y), or a LIBSVM "
            "model of svm-train -b 1"
        )

    @property
    def has_pairs(self) -> bool:
        """True if the model is one-vs-one multiclass (one decision function per pair of classes)."""
        return len(self.labels) > 2 and not self.outputs.of_each_class

    @property
    def has_class_probabilities(self) -> bool:
        """True if the source has class probabilities."""
        return isinstance(self.outputs.probability, ClassProbability)

    @property
    def has_probabilities(self) -> bool:
        """True if each row has a probability for each class, or for inliers and outliers."""
        return self.outputs.probability is not None and self.outputs.probability.of_labels

    @property
    def n_features(self) -> int:
        """Number of columns in a row after the input map."""
        return int(self.header["n_features"])

    @property
    def n_decisions(self) -> int:
        """Number of decision values per row; 0 if the ensemble averages probabilities or counts votes."""
        return int(self.header["n_decisions"])

    @property
    def n_values(self) -> int:
        """Number of values from which predictions are computed; unlike `n_decisions`, positive for means and votes."""
        weights = self.combination.weights
        return self.n_decisions if weights is None else len(weights)

    @property
    def n_raw_features(self) -> int:
        """Number of columns in a raw row."""
        return int(self.header["n_raw_features"])

    @property
    def center(self) -> npt.NDArray[np.float32]:
        """Center of shape (n_features,): the mean of the support vectors, or the origin."""
        return self.coefficients("center") if self.kernel == "gaussian" else np.zeros(self.n_features, np.float32)

    @property
    def kernel(self) -> str:
        """Name of the kernel, as in schema.inc; for an ensemble, the first member's."""
        return schema.names_of("kernel")[int(self.header["kernel"])]

    @property
    def is_constant(self) -> bool:
        """True for a Gaussian kernel with gamma = 0, whose value is always 1."""
        return self.kernel == "gaussian" and self.header["gamma"] == 0.0

    @property
    def is_polynomial(self) -> bool:
        """True for polynomial kernels, including the linear kernel."""
        return self.kernel == "polynomial"

    @property
    def model_of(self) -> str:
        """C++ type that opens the artifact and compiles only the parts that it needs."""
        parts = [f"approxsvm::{name}" for name in (*self.native.parts, "batches")]
        return f"approxsvm::ModelOf<{', '.join(parts)}>"

    @property
    def n_terms(self) -> int:
        """Number of terms in the exact sum: support vectors, or the terms that replace them."""
        return int(self.native.n_terms)

    @property
    def most_multiply_adds(self) -> tuple[int, int] | None:
        """Maximum multiply-adds for a single row's label, without and with the definition; None if unknown."""
        work = self.native.row_work
        return None if work is None else (round(work[0]), round(work[1]))

    @property
    def has_form(self) -> bool:
        """True if a polynomial kernel is expanded into a linear or quadratic form."""
        return self.is_polynomial and self.mode != "exact"

    @property
    def kernel_name(self) -> str:
        """Description of the kernel, or of the members' kernels."""
        if self.members:
            return ", ".join(sorted({member.kernel_name for member in self.members}))
        degree = int(self.header["degree"])
        if self.kernel == "gaussian":
            return "Gaussian"
        if self.kernel == "sigmoid":
            return f"sigmoid, coef0 {self.coef0:.6g}"
        if not self.is_polynomial:
            return f"{self.n_terms:,} {self.kernel}s"
        if degree == 1 and self.header["gamma"] == 1.0 and self.coef0 == 0.0:
            return "linear"
        return f"polynomial of degree {degree}, coef0 {self.coef0:.6g}"

    @property
    def coef0(self) -> float:
        """Constant added to gamma x.z in inner-product kernels."""
        return float(self.polynomial_numbers()[0]) if len(self.polynomial_numbers()) else 0.0

    def polynomial_numbers(self) -> npt.NDArray[np.float64]:
        """Return the numbers in the section "polynomial" as stored; empty for other kernels."""
        return np.frombuffer(self._sections.get("polynomial", b""), "<f8")

    @property
    def n_centers(self) -> int:
        """Number of expansion centers; 0 in "exact" mode; for an ensemble, the maximum over its members."""
        return max([int(self.header["n_centers"]), *(member.n_centers for member in self.members)])

    @property
    def n_varying(self) -> int:
        """Number of features that vary in the expansions; fewer than all features only if rows lie on slices."""
        return len(self.numbers("varying")) or self.n_features

    @property
    def plan(self) -> str:
        """Sentence that states why the compiler chose the plan; empty if there was no choice."""
        return bytes(self._sections.get("plan", b"")).decode()

    @property
    def build_plan(self) -> Plan | None:
        """Plan that was built, including the plans of an ensemble's members; None if the artifact contains no plan."""
        if self.members:
            plans = [member.build_plan for member in self.members]
            known = tuple(plan for plan in plans if plan is not None)
            return Plan("ensemble", mode=known[0].mode, members=known) if len(known) == len(plans) else None
        content = self._sections.get("build_plan")
        if content is None:
            return None
        try:
            return replace(Plan.from_json(bytes(content)), reason=self.plan)
        except InputError as error:
            raise ArtifactError(f"section build_plan does not follow models/FORMAT.md: {error}") from None

    @property
    def source(self) -> str:
        """Origin of the model."""
        return str(self.header["source"].rstrip(b"\0").decode(errors="replace"))

    @property
    def is_density(self) -> bool:
        """True for a kernel mean read from a kernel density model, which predicts like a regressor."""
        if not isinstance(self.outputs.probability, GaussianDensity) or self.kernel != "gaussian":
            return False
        is_sum = self.n_decisions == 1 and float(self.decision_numbers()["intercept"][0]) == 0.0
        return is_sum and not bool((self.dual_coef() < 0.0).any())

    @property
    def offset(self) -> float | None:
        """Offset between a one-class model's scores and decision values; None if there are no scores."""
        if self.task != "one_class" or self.is_constant:  # for gamma = 0, the offset is not stored
            return None
        return -float(self.decision_numbers()["intercept"][0])

    @property
    def why_no_scores(self) -> str:
        """Reason why there are no scores, for an error message."""
        if self.task != "one_class":
            return "only one-class models have scores"
        return "with gamma=0 the artifact holds a constant decision value, without its offset"

    @property
    def subspace_coordinates(self) -> tuple[int, ...]:
        """Number of coordinates in each subspace stage; empty without subspace stages."""
        found = self.arrays("subspaces")
        return tuple(found["coordinates"][0].tolist()) if found else ()

    def router(self) -> RouterLists:
        """Return the lists used to find a nearby center; the artifact must have several centers."""
        found = self.arrays("router")
        floats = np.concatenate([*found["groups"], *found["panels"]])
        points = floats.reshape(-1, 1 + self.n_features, schema.ROUTER_WIDTH).transpose(0, 2, 1)
        return RouterLists(found["starts"][0].astype(np.int64), found["members"][0], points)

    def section(self, name: str) -> bytes:
        """Return the contents of a section; empty if the artifact lacks it."""
        return bytes(self._sections.get(name, b""))

    def arrays(self, name: str) -> dict[str, list[npt.NDArray[Any]]]:
        """Return a section's arrays by name, one per name or one per group; empty if the artifact lacks it."""
        content = self._sections.get(name)
        return {} if content is None else arrays.views(self.native, name, content)

    def coefficients(self, name: str) -> npt.NDArray[np.float32]:
        """Return the packed float32 values in a section: "linear", "quadratic", "higher", "direction", ..."""
        return np.frombuffer(self._sections.get(name, b""), "<f4")

    def dual_coef(self) -> npt.NDArray[np.float64]:
        """Return coefficients, a row per function or in LIBSVM's layout (KernelModel); empty in "approximate" mode."""
        n_rows = self.header["n_labels"] - 1 if self.has_pairs else self.n_decisions
        return np.frombuffer(self._sections.get("dual_coef", b""), "<f8").reshape(n_rows, -1)

    def decision_coef(self) -> npt.NDArray[np.float64]:
        """Return all functions' coefficients, shape (n_decisions, n_sv); 0 for vectors that a function does not use."""
        block = self.dual_coef()
        if not self.has_pairs:
            return block
        ends = np.cumsum(self.numbers("class_counts").astype(np.int64))
        classes = [slice(end - count, end) for end, count in zip(ends, np.diff(ends, prepend=0), strict=True)]
        pairs = class_pairs(len(self.labels))
        coef = np.zeros((len(pairs), block.shape[1]))
        for row, (i, j) in zip(coef, pairs, strict=True):
            row[classes[i]], row[classes[j]] = block[j - 1, classes[i]], block[i, classes[j]]
        return coef

    def numbers(self, name: str) -> npt.NDArray[np.uint32]:
        """Return the integers in a section: "class_counts", "majority_classes" or "varying"."""
        return np.frombuffer(self._sections.get(name, b""), "<u4")

    def decision_numbers(self) -> npt.NDArray[np.void]:
        """Return each decision function's intercept, W, A1 and value_error (models/FORMAT.md, "decisions")."""
        return np.frombuffer(self._sections["decisions"], schema.DECISION_NUMBERS)

    def expansion_numbers(self) -> npt.NDArray[np.void]:
        """Return each expansion's record, shape (n_centers * n_forms,) (models/FORMAT.md, "expansions")."""
        return np.frombuffer(self._sections.get("expansions", b""), schema.EXPANSION_NUMBERS)

    def centers(self) -> npt.NDArray[np.float32]:
        """Return the expansion centers, shape (n_centers, n_features)."""
        stored = self.coefficients("centers" if self.n_centers > 1 else "center")
        return stored.reshape(-1, self.n_features)[: self.n_centers]

    def support_vectors(self) -> npt.NDArray[np.float64]:
        """Return the support vectors, shape (n_sv, n_features); empty in an "approximate" artifact."""
        if "support_vectors" not in self._sections:
            return np.empty((0, self.n_features))
        n_sv = self.dual_coef().shape[1]
        return packing.unpack(self._sections["support_vectors"], n_sv, self.n_features)


def _members(content: memoryview) -> Iterator[Artifact]:
    """Yield each of the concatenated artifacts."""
    while content:
        n_bytes = int.from_bytes(content[_FILE_BYTES : _FILE_BYTES + 8], "little")
        yield Artifact._within(content[:n_bytes])
        content = content[n_bytes:]


def _holds(dtype: str, label: Any, longest: int) -> bool:
    """Return whether a label dtype can hold `label` exactly; `longest` is the length of the longest string label."""
    kind, size = dtype[1:2], dtype[2:]
    if not isinstance(label, str):
        is_known = _NUMBERS.fullmatch(dtype) and isinstance(label, float) == (kind == "f")
        with np.errstate(over="ignore"):
            return bool(is_known and (kind != "u" or label >= 0) and np.array(label).astype(dtype).item() == label)
    if dtype == "|O":
        return True
    if not _STRINGS.fullmatch(dtype):
        return False
    if kind == "u":  # integers, some of which exceed int64
        return label.isascii() and label.isdigit() and str(int(label[:21])) == label and int(label) < 2**64
    # A dtype may be wider than its strings, but a small file must not declare gigabytes.
    return len(label) <= int(size) <= max(schema.limit("max_label_width"), longest) and not label.endswith("\0")


def _texts(content: Any, count: int) -> list[str]:
    ends = 4 * count + np.cumsum((0, *struct.unpack_from(f"<{count}I", content)))
    return [bytes(content[a:b]).decode() for a, b in pairwise(ends)]


def _read_aligned(path: str | os.PathLike[str]) -> Any:
    """Read a file into aligned memory, which the native reader uses without copying it."""
    with open(path, "rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        buffer = np.empty(size + schema.ALIGNMENT, np.uint8)
        start = -buffer.__array_interface__["data"][0] % schema.ALIGNMENT
        memory: Any = buffer[start : start + size]
        n = 0
        while n < size and (n_more := file.readinto(memory[n:])):
            n += n_more
        rest = file.readall()  # needed for a pipe, whose size is unknown, and for a file that has grown
    memory.flags.writeable = False
    return memory if n == size and not rest else memory[:n].tobytes() + rest
