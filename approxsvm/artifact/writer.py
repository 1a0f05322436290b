"""Artifact writer, which scales, orders and narrows the compiler's values, and lays out the bytes."""

import math
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from approxsvm.artifact import packing
from approxsvm.artifact.arrays import pack
from approxsvm.artifact.categories import pack_categories
from approxsvm.artifact.combination import pack_combination
from approxsvm.artifact.outputs import is_plain, pack_outputs
from approxsvm.artifact.views import Artifact
from approxsvm.errors import UnsupportedModelError
from approxsvm.expansion.certificate import Certificates
from approxsvm.expansion.monomials import n_monomials, storage_order
from approxsvm.expansion.router import Router
from approxsvm.expansion.taylor import CenterChoice, Expansions, choose_center, sv_norms
from approxsvm.frames.texts import TextRows
from approxsvm.ir import schema
from approxsvm.ir.ensembles.ensemble import Ensemble
from approxsvm.ir.kernel_model import FloatArray, KernelModel
from approxsvm.ir.plan import Plan
from approxsvm.ir.single_model import SingleModel
from approxsvm.ir.taylor_model import TaylorModel
from approxsvm.reference.definition import GaussianDefinition

N_CHECK_ROWS: Final = 2
# Limit on the amplitude of check rows for models without a natural scale.
MOST_AMPLITUDE: Final = 2.0**60


@dataclass(frozen=True, eq=False)
class Frame:
    """Origin of the expansion, and norms of the support vectors."""

    center: npt.NDArray[np.float32]  # (n_features,): mean of the support vectors, or the origin
    choice: CenterChoice  # "mean" or "origin"
    # max ||x_i - center|| and max ||x_i||
    max_sv_norm: float
    max_sv_norm_origin: float

    @classmethod
    def of(cls, model: KernelModel, choice: CenterChoice) -> "Frame":
        """Build the frame for a choice of center."""
        center = choose_center(model, choice)
        return cls(center, choice, *sv_norms(model, center))


@dataclass(frozen=True, eq=False)
class Expanded:
    """Expansions about common centers, their certificates, and the router that assigns rows to centers."""

    centers: npt.NDArray[np.float32]  # (n_centers, n_features)
    degree: int
    # One element per expanded decision function, in the functions' order
    expansions: tuple[Expansions, ...]
    certificates: tuple[Certificates, ...]  # in the order of `expansions`
    router: Router | None = None  # None if there is only one center
    # (n_centers,): for pairwise functions, the majority class among the rows near each center
    majority_classes: npt.NDArray[np.intp] | None = None
    # (n_varying,): columns that vary in the expansions, if all other columns are constant around each center
    varying: npt.NDArray[np.intp] | None = None
    # (n_centers, n_forms): indices of the decision functions expanded about each center; None if all are
    forms: npt.NDArray[np.intp] | None = None


def majority_forms(n_classes: int, majority_classes: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Return, for each center, the indices of the class pairs that include its majority class, in ascending order."""
    w = majority_classes[:, np.newaxis]
    others = np.arange(n_classes - 1) + (np.arange(n_classes - 1) >= w)
    i, j = np.minimum(w, others), np.maximum(w, others)
    pairs: npt.NDArray[np.intp] = i * (2 * n_classes - i - 1) // 2 + (j - i - 1)
    return pairs


def input_scale_for(gamma: float) -> float:
    """Return the largest power of two not exceeding sqrt(2 gamma), or 1 for gamma = 0.

    Raises UnsupportedModelError if the power exceeds the format's limits.
    """
    if gamma == 0.0:
        return 1.0
    _, exponent = np.frexp(gamma)
    input_scale = float(np.ldexp(1.0, int(exponent) // 2))
    if not 1.0 / schema.MAX_INPUT_SCALE <= input_scale <= schema.MAX_INPUT_SCALE:
        raise UnsupportedModelError(f"gamma is {gamma:.6g}; supported are 0 and 2^-200 to 2^200: scale the features")
    return input_scale


def build(
    model: KernelModel,
    mode: schema.Mode,
    frame: Frame,
    expanded: Expanded | None = None,
    *,
    others: Mapping[str, bytes] | None = None,
    exact: Mapping[str, bytes] | None = None,
    tolerance: float = np.inf,
    tolerance_asked: bool = False,
    plan: Plan | None = None,
) -> Artifact:
    """Lay out a compiled model.

    `frame` contains the center of a single expansion; `expanded` is None in "exact" mode. `others` contains optional
    sections by name. `exact` contains the exact model's sections if they can be taken from an artifact of the same
    model and frame (`exact_sections_of`). `tolerance` is the guaranteed maximum error of values, infinite if only
    labels matter; with `tolerance_asked`, rows with larger errors are rejected. `plan` is the plan that was built, with
    its reason.

    Raises UnsupportedModelError if gamma, the coefficients or the labels exceed the format's limits.
    """
    assert (expanded is None) == (mode == "exact")
    header = start_header(model, mode, frame, tolerance, tolerance_asked)
    decisions = decisions_of(model)
    if model.gamma == 0.0:  # the function is constant, even for rows whose norm overflows
        decisions["intercept"] = [_constant_decision(model, k) for k in range(model.n_decisions)]
    sections = {"center": frame.center.astype("<f4").tobytes()}
    if expanded is not None:
        expanded_ones = slice(None) if expanded.forms is None else np.unique(expanded.forms)
        decisions["total"] = decisions["sum_moduli"]  # an upper bound for functions that are not expanded
        decisions["total"][expanded_ones] = [certificates.total for certificates in expanded.certificates]
        header |= {
            "degree": expanded.degree,
            "n_centers": len(expanded.centers),
            "majority_only": int(expanded.forms is not None),
            "first_remainder_degree": max(c.first_remainder_degree for c in expanded.certificates),
        }
        sections |= _expansion_sections(model, header, frame, expanded, decisions["intercept"])
    sections["decisions"] = pack_decisions(decisions)
    if mode != "approximate":
        sections |= exact or _exact_sections(model, header, frame.center, decisions["intercept"])
    sections |= others or {}
    sections |= plan_sections(plan)
    return assemble(model, header, sections)


def plan_sections(plan: Plan | None) -> dict[str, bytes]:
    """Return the sections with the plan and its reason; no sections without a plan."""
    if plan is None:
        return {}
    reason = {"plan": plan.reason.encode()} if plan.reason else {}
    return reason | {"build_plan": replace(plan, reason="").to_json().encode()}


def decisions_of(model: KernelModel) -> npt.NDArray[np.void]:
    """Return each decision function's record, which does not depend on expansions; its sums may be infinite."""
    decisions = np.zeros(model.n_decisions, schema.DECISION_NUMBERS)
    decisions["intercept"] = model.intercept
    decisions["value_error"] = model.value_error
    with np.errstate(over="ignore"):
        decisions["sum_moduli"] = model.absolute_sums() * (1 + 2.0**-40)
    return decisions


def pack_decisions(decisions: npt.NDArray[np.void]) -> bytes:
    """Encode the decision functions' records; raise UnsupportedModelError if sums exceed the format's limits."""
    finite = (np.isfinite(decisions["intercept"]) & np.isfinite(decisions["total"])).all()
    if not finite or not (decisions["sum_moduli"] < schema.MAX_OUTPUT_SCALE).all():
        largest = float(decisions["sum_moduli"].max())
        raise UnsupportedModelError(f"the coefficients have the absolute sum {largest:.6g}; the limit is 2^1000")
    return decisions.tobytes()


def _constant_decision(model: KernelModel, decision: int) -> float:
    """Return the decision value of a model with gamma = 0, rounded only once because no bound covers rounding."""
    try:
        return math.fsum((*model.coefficients(decision).tolist(), float(model.intercept[decision])))
    except OverflowError:
        return math.inf


def power_of_two_above(largest: float) -> float:
    """Return the smallest power of two above a value, but at least the format's minimum; 1 for 0."""
    if largest == 0.0:
        return 1.0
    return max(float(np.ldexp(1.0, int(np.frexp(largest)[1]))), 1.0 / schema.MAX_OUTPUT_SCALE)


def start_header(
    model: SingleModel, mode: schema.Mode, frame: Frame, tolerance: float, tolerance_asked: bool
) -> dict[str, Any]:
    """Return the header fields that do not depend on the expansions."""
    label_kind, label_dtype, _ = _pack_labels(model.labels)
    return {
        **schema.IDENTITY,
        "task": schema.TASKS.index(model.task),
        "mode": schema.MODES.index(mode),
        "n_features": model.n_features,
        "n_support_vectors": model.n_sv,
        "first_index": model.first_index,
        "n_labels": len(model.labels),
        "gamma": model.gamma,
        "label_kind": label_kind,
        "label_dtype": label_dtype,
        "tolerance_asked": int(tolerance_asked),
        "source": _cut(model.source),
        "n_raw_features": model.n_raw_features,
        "kernel": schema.number_of("kernel", model.kernel),
        "majority_only": 0,
        "input_scale": input_scale_for(model.gamma) if model.kernel == "gaussian" else 1.0,
        "tolerance": tolerance,
        "max_sv_norm": frame.max_sv_norm,
        "max_sv_norm_origin": frame.max_sv_norm_origin,
        "center_kind": schema.number_of("center_kind", frame.choice),
        "n_decisions": model.n_decisions,
        "degree": model.degree,
        "n_centers": 0,
        "first_remainder_degree": 0,
    }


# Sections that contain the exact model.
_OF_EXACT_MODEL: Final = ("dual_coef", "support_vectors", "class_counts", "exact_check_rows")
# Sections that an ensemble shares with its members.
_OF_ALL_MEMBERS: Final = ("feature_names", "categories", "dtypes")


def build_ensemble(members: Sequence[Artifact], ensemble: Ensemble) -> Artifact:
    """Combine an ensemble's compiled members into one artifact, whose outputs combine the members' predictions.

    Raises ArtifactError if the members do not fit together.
    """
    first = members[0]
    label_kind, label_dtype, labels = _pack_labels(ensemble.labels)
    sections = {name: first.section(name) for name in _OF_ALL_MEMBERS if first.section(name)}
    if labels:
        sections["labels"] = labels
    if not is_plain(ensemble.outputs, len(ensemble.labels)) or ensemble.n_decisions == 0:
        sections["outputs"] = pack_outputs(ensemble.outputs)
    n_columns = sum(map(ensemble.combination.n_columns_of, members))
    sections["combination"] = pack_combination(ensemble.combination, n_columns)
    plans = list(dict.fromkeys(member.plan for member in members))
    if plans != [""]:
        sections["plan"] = " | ".join(plans).encode()
    sections["members"] = b"".join(member.data for member in members)
    header = dict.fromkeys(schema.fields_of("header"), 0) | {
        **schema.IDENTITY,
        "task": schema.TASKS.index(ensemble.task),
        "mode": schema.ENSEMBLE,
        "n_features": first.n_raw_features,
        "n_raw_features": first.n_raw_features,
        "n_support_vectors": sum(int(member.header["n_support_vectors"]) for member in members),
        "n_labels": len(ensemble.labels),
        "label_kind": label_kind,
        "label_dtype": label_dtype,
        "first_index": first.header["first_index"],
        "input_scale": 1.0,
        "tolerance": np.inf,
        "n_decisions": ensemble.n_decisions,
        "source": _cut(ensemble.source),
    }
    return Artifact(_lay_out(header, sections))


def _cut(source: str) -> bytes:
    """Truncate a name to the bytes that fit into the header."""
    return source.encode()[:32].decode(errors="ignore").encode()


def build_taylor(
    model: TaylorModel, expansion: Expansions, certificates: Certificates, *, plan: Plan | None = None
) -> Artifact:
    """Lay out, in "approximate" mode, a Gaussian times a polynomial, which is an expansion about the origin.

    Raises UnsupportedModelError if gamma, the coefficients or the labels exceed the format's limits.
    """
    origin = np.zeros(model.n_features, np.float32)
    frame = Frame(origin, "origin", 0.0, 0.0)  # without support vectors, the limit of Claesen et al. does not apply
    header = start_header(model, "approximate", frame, math.inf, False) | {
        "n_centers": 1,
        "first_remainder_degree": certificates.first_remainder_degree,
    }
    decisions = np.zeros(1, schema.DECISION_NUMBERS)
    decisions["intercept"], decisions["total"] = model.intercept, certificates.total
    decisions["sum_moduli"], decisions["value_error"] = certificates.sum_moduli, model.value_error
    expanded = Expanded(origin[np.newaxis], model.degree, (expansion,), (certificates,))
    sections = {"center": origin.astype("<f4").tobytes(), "decisions": pack_decisions(decisions)}
    sections |= _expansion_sections(model, header, frame, expanded, model.intercept)
    sections |= plan_sections(plan)
    return assemble(model, header, sections)


def _expansion_sections(
    model: SingleModel, header: dict[str, Any], frame: Frame, expanded: Expanded, intercepts: FloatArray
) -> dict[str, bytes]:
    """Return the expansions' sections: float32 coefficients, records, router and check rows.

    Coordinates are scaled by `input_scale`, the largest power of two not exceeding sqrt(2 gamma). The coefficients of
    each expansion are scaled by another power of two, so that none overflows float32, for any gamma.
    """
    n, d = expanded.centers.shape
    varying = np.arange(d) if expanded.varying is None else expanded.varying
    d = len(varying)
    certificates = expanded.certificates
    forms = np.tile(np.arange(model.n_decisions), (n, 1)) if expanded.forms is None else expanded.forms
    by_center = partial(_by_center, [np.flatnonzero(forms == k) for k in np.unique(forms)])
    records = np.zeros(forms.size, schema.EXPANSION_NUMBERS)
    constants = by_center([e.constants for e in expanded.expansions])
    if model.gamma == 0.0:
        constants = np.zeros_like(constants)
    wide_parts = tuple(by_center(list(same)) for same in zip(*(e.parts for e in expanded.expansions), strict=True))
    parts, scales = _scaled_parts(constants, wide_parts, header["input_scale"])
    records["constant"] = constants / scales
    records["output_scale"] = scales
    records["norms"] = by_center([_known_norms(c, header["first_remainder_degree"]) for c in certificates])
    records["remainder"] = by_center([c.remainders for c in certificates])
    records["contraction"] = by_center([c.contractions for c in certificates])
    records["coefficient_error"] = by_center([c.coefficient_errors for c in certificates])
    records["max_sv_norm"] = by_center([e.max_sv_norms for e in expanded.expansions])
    sections = {"linear": parts[0].tobytes()}
    if n > 1:
        sections["centers"] = expanded.centers.astype("<f4").tobytes()
        assert expanded.router is not None
        sections["router"] = _pack_router(expanded, frame.center, header["input_scale"])
    if expanded.varying is not None:
        sections["varying"] = varying.astype("<u4").tobytes()
    if expanded.majority_classes is not None:
        sections["majority_classes"] = expanded.majority_classes.astype("<u4").tobytes()
    if len(parts) > 1:
        sections["quadratic"] = parts[1][:, storage_order(d, 2)].tobytes()
    if len(parts) > 2:
        stored = [part[:, storage_order(d, k)] for k, part in enumerate(parts[2:], 3)]
        sections["higher"] = np.concatenate(stored, axis=1).tobytes()
    only = certificates[0] if len(certificates) == 1 else None
    has_directions = schema.MODES[header["mode"]] == "certified" and expanded.degree == 2
    if has_directions and only is not None and only.directions is not None and np.isfinite(only.direction_errors).all():
        sections["direction"] = _pack_directions(only, d, records)
    sections["expansions"] = records.tobytes()
    sections["check_rows"] = _expansion_check_rows(header, expanded.centers, varying, parts, records, intercepts[forms])
    return sections


def _by_center(places: list[npt.NDArray[np.intp]], of_decisions: list[FloatArray]) -> FloatArray:
    """Merge the decision functions' arrays into one array, ordered by center."""
    result = np.empty((sum(map(len, places)), *of_decisions[0].shape[1:]))
    for positions, values in zip(places, of_decisions, strict=True):
        result[positions] = values
    return result


def _known_norms(certificates: Certificates, first_remainder_degree: int) -> FloatArray:
    """Return the norms of all degrees below `first_remainder_degree`, from which on all remainders apply.

    If a function's remainder starts at a lower degree, it also bounds every degree k from there to
    `first_remainder_degree` - 1: T_theta >= theta^(k/2) N_k.
    """
    norms = certificates.norms.copy()
    for k in range(certificates.first_remainder_degree, first_remainder_degree):
        norms[:, k] = certificates.remainders * certificates.contractions ** (-0.5 * k) * (1 + 1e-12)
    return norms


def _scaled_parts(
    constants: FloatArray, parts: tuple[FloatArray, ...], input_scale: float
) -> tuple[list[npt.NDArray[np.float32]], FloatArray]:
    """Return each degree's coefficients, in float32 and scaled coordinates, and each expansion's power of two.

    Raises UnsupportedModelError if a coefficient exceeds the format's limits.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # the check below rejects infinity and NaN
        scaled = [part / input_scale**k for k, part in enumerate(parts, 1)]
        # The coefficients of the symmetric form are smaller than the monomials' coefficients, by a factor of up to k!.
        largest = np.abs(constants)
        for k, part in enumerate(scaled, 1):
            largest = np.maximum(largest, np.abs(part).max(axis=1, initial=0.0) / math.factorial(min(k, 2)))
    if not (largest < schema.MAX_OUTPUT_SCALE).all():
        raise UnsupportedModelError(f"a coefficient of {largest.max():.6g} is too large; the limit is 2^1000")
    scales = np.array([power_of_two_above(x) for x in largest])
    return [(part / scales[:, np.newaxis]).astype("<f4") for part in scaled], scales


def _pack_directions(certificates: Certificates, n_features: int, records: npt.NDArray[np.void]) -> bytes:
    """Return the matrix G of every center as a packed triangle; store scales, traces and errors in `records`."""
    assert certificates.directions is not None
    directions, errors = certificates.directions, certificates.direction_errors
    scales = np.array([power_of_two_above(x) for x in np.abs(directions).max(axis=1, initial=0.0) / 2.0])
    records["direction_scale"] = scales
    records["direction_trace"] = certificates.direction_traces
    records["direction_error"] = errors
    narrowed: npt.NDArray[np.float32] = (directions / scales[:, np.newaxis]).astype("<f4")
    return narrowed[:, storage_order(n_features, 2)].tobytes()


def _monomials(u: FloatArray, degree: int) -> list[FloatArray]:
    """Return, for each degree from 1 to `degree`, the monomials in the coordinates u, in lexicographic order."""
    n = len(u)
    by_degree = [u]
    for k in range(2, degree + 1):
        before = by_degree[-1]
        tails = [before[len(before) - n_monomials(n - i, k - 1) :] for i in range(n)]
        by_degree.append(np.concatenate([u[i] * tail for i, tail in enumerate(tails)]))
    return by_degree


def _pack_router(expanded: Expanded, reference: npt.NDArray[np.float32], input_scale: float) -> bytes:
    """Encode the lists of centers in panels of 16 slots, with the float32 values from which distances are computed."""
    router, centers = expanded.router, expanded.centers
    assert router is not None
    members = [_padded(np.asarray(slots, "<u4")) for slots in router.members]
    assert max(map(len, members)) <= schema.MAX_GROUP_PANELS * schema.ROUTER_WIDTH
    starts = np.cumsum([0, *(len(slots) // schema.ROUTER_WIDTH for slots in members)])
    slots = np.concatenate(members)
    group_slots = _padded(np.arange(len(router.groups)))
    groups, panels = (
        _panels((points.astype(np.float64) - reference) * input_scale, router.metric, taken)
        for points, taken in ((router.groups, group_slots), (centers, slots))
    )
    counts = {"n_groups": len(members), "n_panels": starts[-1]}
    return pack("router", **counts, starts=starts, members=slots, groups=groups, panels=panels)


def _padded(slots: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Pad slots to a multiple of 16 by repeating the last slot."""
    return np.concatenate([slots, np.repeat(slots[-1:], -len(slots) % schema.ROUTER_WIDTH)])


def _panels(points: FloatArray, metric: FloatArray, slots: npt.NDArray[Any]) -> FloatArray:
    """Return panels of 16 slots, with half of x'Dx and -Dx for the point x in each slot; D is the router's metric."""
    with np.errstate(over="ignore"):
        half_sq_norm = 0.5 * (metric * points**2).sum(axis=1, keepdims=True)
        rows = np.concatenate([half_sq_norm, -metric * points], axis=1)[slots]
        limit = float(np.finfo(np.float32).max)
        panels: FloatArray = rows.reshape(-1, schema.ROUTER_WIDTH, rows.shape[1]).transpose(0, 2, 1).clip(-limit, limit)
    return panels


def _expansion_check_rows(
    header: dict[str, Any],
    centers: npt.NDArray[np.float32],
    varying: npt.NDArray[np.intp],
    parts: list[npt.NDArray[np.float32]],
    records: npt.NDArray[np.void],
    intercepts: FloatArray,  # (n_centers, n_forms)
) -> bytes:
    """Compute the check rows' amplitudes, decision values and tolerances in float64 from the narrowed coefficients."""
    n_features, degree, n_forms = centers.shape[1], len(parts), intercepts.shape[1]
    amplitude = _amplitude(n_features)
    result = []
    for k in range(N_CHECK_ROWS):
        c, form = k * len(centers) // N_CHECK_ROWS, k * n_forms // N_CHECK_ROWS
        e, intercept = c * n_forms + form, float(intercepts[c, form])
        row = check_row(header, centers[c], amplitude, k).astype(np.float64)
        u = (row - centers[c])[varying] * header["input_scale"]
        theta = 2.0 * header["gamma"] / header["input_scale"] / header["input_scale"]
        s = theta * float(u @ u)
        scale = records["output_scale"][e] * np.exp(-0.5 * s)
        inner = float(records["constant"][e])
        absolute_sum = abs(inner)
        for part, monomials in zip(parts, _monomials(u, degree), strict=True):
            inner += float(part[e].astype(np.float64) @ monomials)
            absolute_sum += float(np.abs(part[e]).astype(np.float64) @ np.abs(monomials))
        # Sum of absolute values times the depth of summation, with an allowance for exp and for any order of summation.
        tolerance = (max(degree, 2) * n_features + 64) * (1.0 + s) * 2.0**-23 * scale * absolute_sum
        tolerance += 2.0**-48 * abs(intercept) + 2.0**-100 * records["output_scale"][e]
        result.append((amplitude, intercept + scale * inner, tolerance))
    return np.array(result, "<f8").tobytes()


def _exact_sections(
    model: KernelModel, header: dict[str, Any], center: npt.NDArray[np.float32], intercepts: FloatArray
) -> dict[str, bytes]:
    """Return the exact model's sections; none has support vectors if gamma is 0, because values are then constant."""
    if model.gamma == 0.0:
        model = replace(
            model,
            support_vectors=np.empty((0, model.n_features)),
            dual_coef=np.empty((len(model.dual_coef), 0)),
            n_support=np.zeros_like(model.n_support),
            intercept=intercepts,
        )
    check_rows = _exact_check_rows(model, header, center)
    return support_vector_sections(model) | {"exact_check_rows": check_rows}


def exact_sections_of(artifact: Artifact) -> dict[str, bytes]:
    """Return the sections of an artifact that contain its exact model."""
    return {name: bytes(artifact._sections[name]) for name in _OF_EXACT_MODEL if name in artifact._sections}


def support_vector_sections(model: KernelModel) -> dict[str, bytes]:
    """Return the support vectors, their coefficients and, for one-vs-one models, each class's number of vectors."""
    sections = {"dual_coef": model.dual_coef.astype("<f8").tobytes(), "support_vectors": packing.pack(model)}
    if model.has_pairs:
        sections["class_counts"] = np.asarray(model.n_support).astype("<u4").tobytes()
    return sections


def assemble(model: SingleModel, header: dict[str, Any], sections: dict[str, bytes]) -> Artifact:
    """Add the sections common to all modes, and build the artifact."""
    labels = _pack_labels(model.labels)[2]
    if labels:
        sections["labels"] = labels
    if not is_plain(model.outputs, len(model.labels)):
        sections["outputs"] = pack_outputs(model.outputs)
    if model.input_map is not None:
        sections["input_map"] = model.input_map.packed()
        if model.input_map.texts:
            sections["categories"] = pack_categories(model.input_map.texts)
    if model.row_dtypes:
        sections["dtypes"] = model.row_dtypes.written()
    if model.feature_names is not None:
        sections["feature_names"] = _pack_texts(model.feature_names, "feature names")
    return Artifact(_lay_out(header, sections))


def with_vectorizers(artifact: Artifact, texts: TextRows) -> Artifact:
    """Return the artifact with the vectorizers that convert documents to its rows added."""
    header = dict(zip(schema.fields_of("header"), schema.HEADER.unpack_from(artifact.data), strict=True))
    sections = {name: bytes(content) for name, content in artifact._sections.items()}
    return Artifact(_lay_out(header, {**sections, "vectorizers": texts.written()}))


def _lay_out(header: dict[str, Any], sections: dict[str, bytes]) -> bytes:
    """Concatenate header, section table and aligned sections in order, after filling in counts and the checksum."""
    offset = schema.HEADER.size + schema.SECTION.size * len(sections)
    table, body = b"", []
    for name, content in sorted(sections.items(), key=lambda section: schema.SECTION_IDS[section[0]]):
        start = schema.aligned(offset)
        table += schema.SECTION.pack(schema.SECTION_IDS[name], 0, start, len(content))
        body += [bytes(start - offset), content]
        offset = start + len(content)
    body.append(bytes(schema.aligned(offset) - offset))
    header = {**header, "n_sections": len(sections), "file_bytes": schema.aligned(offset), "checksum": 0}
    head = bytearray(schema.HEADER.pack(*(header[name] for name in schema.fields_of("header"))) + table)
    checksum = zlib.crc32(head)
    for piece in body:  # pieces may be large, so only the final join copies them
        checksum = zlib.crc32(piece, checksum)
    struct.pack_into("<I", head, schema.offset_of("header", "checksum"), checksum)
    return b"".join([head, *body])


def _pack_texts(texts: tuple[str, ...], what: str) -> bytes:
    try:
        encoded = [text.encode() for text in texts]
    except UnicodeEncodeError as error:
        raise UnsupportedModelError(
            f"{what} must be valid Unicode, but {error.object!r} is not: {error.reason}"
        ) from None
    return struct.pack(f"<{len(encoded)}I", *map(len, encoded)) + b"".join(encoded)


def _pack_labels(labels: npt.NDArray[Any]) -> tuple[int, bytes, bytes]:
    """Return the label kind, NumPy dtype and bytes.

    Raises UnsupportedModelError if the labels are neither numbers of at most 64 bits nor strings.
    """
    if len(labels) == 0:
        return schema.NO_LABELS, b"", b""
    dtype = labels.dtype
    name = dtype.str.encode()
    if dtype.kind in "biu" and all(-(2**63) <= int(label) < 2**63 for label in labels):
        return schema.INT64, name, labels.astype("<i8").tobytes()
    if dtype.kind == "u":  # integers that exceed int64 are stored as decimal digits
        return schema.TEXT, name, _pack_texts(tuple(str(int(label)) for label in labels), "labels")
    if dtype.kind == "f" and np.isfinite(labels).all() and dtype.itemsize <= 8:
        return schema.FLOAT64, name, labels.astype("<f8").tobytes()
    if dtype.kind == "U" or (dtype.kind == "O" and all(isinstance(label, str) for label in labels)):
        return schema.TEXT, name, _pack_texts(tuple(str(label) for label in labels), "labels")
    raise UnsupportedModelError(
        f"class labels of dtype {dtype} cannot be stored; use integers or floats of at most 64 bits, or strings"
    )


def check_row(
    header: dict[str, Any], center: npt.NDArray[np.float32], amplitude: float, k: int
) -> npt.NDArray[np.float32]:
    """Return synthetic check row k in float32: center plus multiples of amplitude / 128 drawn with SplitMix64."""
    with np.errstate(over="ignore"):
        state = np.uint64(k) + np.uint64(0x9E3779B97F4A7C15) * np.arange(1, len(center) + 1, dtype=np.uint64)
        x = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        steps = ((x ^ (x >> np.uint64(31))) >> np.uint64(56)).astype(np.int64) - 128
    offsets = (steps * (amplitude / 128.0 / header["input_scale"])).astype(np.float32)
    row: npt.NDArray[np.float32] = center + offsets
    return row


def _amplitude(n_features: int) -> float:
    """Return a power of two that, as amplitude, makes a check row's s about 1."""
    return float(2.0 ** -np.ceil(np.log2(n_features) / 2.0))


def _exact_check_rows(model: KernelModel, header: dict[str, Any], center: npt.NDArray[np.float32]) -> bytes:
    """Compute the check rows' amplitudes, exact decision values and tolerances from the definition in float64."""
    definition, amplitude = GaussianDefinition(model), _amplitude(model.n_features)
    longest = (header["max_sv_norm_origin"], header["max_sv_norm"])  # because the engine's center may be the origin
    result = []
    for k in range(N_CHECK_ROWS):
        row = check_row(header, center, amplitude, k).astype(np.float64)
        result.append((amplitude, *definition.by_norms(row, k * model.n_decisions // N_CHECK_ROWS, longest)))
    return np.array(result, "<f8").tobytes()
