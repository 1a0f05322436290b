"""Top part of a report: headline, verdict, four key numbers, and a list of the missing figures."""

import re
from textwrap import fill
from typing import Final

import numpy as np

from approxsvm.analysis.report.evidence import Evidence
from approxsvm.analysis.report.plots import share_text
from approxsvm.analysis.report.words import bytes_text, count, short, speedup, time_text
from approxsvm.analysis.summary import made_of
from approxsvm.analysis.verification import Compiled
from approxsvm.artifact.views import Artifact
from approxsvm.system.threads import n_threads

# Maximum number of rows in a list.
_LISTED_ROWS: Final = 10
_TEXT_WIDTH: Final = 100
DISTURBED: Final = " Other programs kept the processor busy meanwhile, so the factors may be too large: measure again."


def headline(artifact: Artifact, evidence: Evidence) -> str:
    """Return one sentence that summarizes the main result."""
    of_what = made_of(int(artifact.header["n_support_vectors"]), artifact.kernel_name)
    parts = [f"{_kind(artifact)}, {of_what} → {bytes_text(artifact.n_bytes)}"]
    against = evidence.against
    if against is not None and evidence.speed_ratio is not None:
        parts.append(f"{' '.join(speedup(evidence.speed_ratio))} {against.speed_of} here")
        if artifact.task != "regression":
            parts.append(f"{int(against.judged.differ.sum()):,} of {len(against.positions):,} labels differ")
        elif len(against.judged.errors):
            parts.append(f"no value is off by more than {float(against.judged.errors.max()):.2g}")
    share = float(evidence.by_expansion.mean())
    if artifact.is_polynomial and artifact.has_form:
        parts.append(f"{share_text(share)} of rows decided by a quadratic form without approximation")
    elif share == 0.0:
        parts.append("all rows decided by the exact engine")
    elif artifact.mode == "approximate":
        parts.append(f"{share_text(float(evidence.certified.mean()))} certified, without an exact engine")
    else:
        by = "sums in few coordinates" if artifact.subspace_coordinates else "the expansion"
        parts.append(f"{share_text(share)} decided by {by}" + (", the rest by the exact engine" if share < 1.0 else ""))
    return ", ".join(parts) + "."


def _kind(artifact: Artifact) -> str:
    if artifact.task == "classification":
        return f"{len(artifact.labels)} classes"
    return {"regression": "A regression", "one_class": "One class"}[artifact.task]


def verdict(compiled: Compiled, evidence: Evidence) -> dict[str, str]:
    """Return a badge and a sentence that state whether the model satisfies all its guarantees."""
    against, artifact = evidence.against, compiled.artifact
    if against is None:
        text = "No source was given, so errors, label differences and the speedup are unknown."
        return {"kind": "unknown", "badge": "Not compared", "text": text}
    comparison, n = against.judged, len(against.positions)
    n_differ, n_ties = int(comparison.differ.sum()), int(comparison.near_tie.sum())
    in_doubt = comparison.doubt
    ties = ""
    if in_doubt is not None:
        ties = f" But {in_doubt}."
    elif n_ties and artifact.task != "regression":
        ties = f" {n_ties:,} of them are so close to the boundary that float64 cannot tell their label."
    broken = []
    if comparison.n_violations:
        broken.append(
            f"{count(comparison.n_violations, 'value misses its', 'values miss their')} bound or the tolerance"
        )
    if n_differ and artifact.mode != "approximate":
        broken.append(f"{count(n_differ, 'label differs', 'labels differ')} from the source's")
    if broken:
        return {
            "kind": "broken",
            "badge": "A guarantee does not hold",
            "text": f"Of {n:,} rows, {' and '.join(broken)}.{ties}",
        }
    if artifact.mode == "approximate":
        text = (
            f"Every error is below its bound on {n:,} rows. Mode “approximate” does not guarantee labels: "
            f"{count(n_differ, 'differs', 'differ')} ({share_text(n_differ / n)}).{ties}"
        )
    elif artifact.task == "regression":
        whose = "the source's" if in_doubt is None else "the value of the source's formula"
        text = f"On {n:,} rows, every value is as close to {whose} as guaranteed.{ties}"
    else:
        decided = "" if in_doubt is None else " that float64 can decide"
        text = f"On {n:,} rows, every label{decided} equals the source's, and every error is below its bound.{ties}"
    if in_doubt is not None:
        return {"kind": "unknown", "badge": "The source itself cannot tell", "text": text}
    return {"kind": "kept", "badge": "All guarantees hold", "text": text}


def speed_in_words(compiled: Compiled, evidence: Evidence) -> str:
    """Explain the speed figures for readers who do not know the compared programs."""
    against, threads = evidence.against, count(n_threads(compiled.n_jobs), "thread", "threads")
    if against is None:
        return f"On {threads} of this machine a row takes {time_text(evidence.speed.seconds_per_row)}."
    ours, theirs = evidence.speed.seconds_per_row, against.speed.seconds_per_row
    text = (
        f"A million rows take {time_text(1e6 * ours)} on {threads} of this machine; with {against.speed_of} they would "
        f"take {time_text(1e6 * theirs)}."
    )
    if against.is_definition:
        text += (
            " The definition in NumPy adds up all kernels in float64 by matrix products. It stands in for the source, "
            "which is a file; LIBSVM's own svm-predict was not run here."
        )
    if against.exact_engine is not None:
        by_engine, by_plan = theirs / against.exact_engine.seconds_per_row, against.exact_engine.seconds_per_row / ours
        if by_plan > 1.05:
            factors = f"{short(by_engine)} by the exact engine times {short(by_plan)} by the plan"
            text += f" The factor of {short(theirs / ours)} is {factors}."
    timed = (evidence.speed, against.speed, against.exact_engine)
    return text + DISTURBED if any(speed is not None and speed.is_disturbed for speed in timed) else text


def as_text(judged: dict[str, str], compiled: Compiled, evidence: Evidence) -> str:
    """Return the verdict, the key numbers and the speed as plain text for terminals."""
    figures = tiles(compiled.artifact, evidence)
    width = max(len(tile["number"]) for tile in figures)
    lines = [f"{tile['number']:>{width}}  {tile['name']} ({tile['remark']})" for tile in figures]
    first, last = (
        fill(re.sub(r"(?<=\d) (?=[nµm]?s\b)", "\u00a0", text), _TEXT_WIDTH, break_on_hyphens=False)
        for text in (f"{judged['badge']}. {judged['text']}", speed_in_words(compiled, evidence))
    )
    return "\n\n".join([first, "\n".join(lines), last]).replace("\u00a0", " ")


def tiles(artifact: Artifact, evidence: Evidence) -> list[dict[str, str]]:
    """Return four key numbers, each with a name and a comment."""
    against, tiles = evidence.against, []
    if against is None:
        tiles.append(_tile(f"{len(evidence.positions):,}", "rows predicted", "no source to compare with"))
    elif artifact.task == "regression":
        tolerance = float(artifact.header["tolerance"]) if not artifact.members else np.inf
        promised = f"guaranteed: at most {tolerance:.2g}" if np.isfinite(tolerance) else "no tolerance was given"
        largest = float(against.judged.errors.max(initial=0.0))
        tiles.append(_tile(f"{largest:.2g}", "largest error", promised))
    else:
        n, n_differ = len(against.positions), int(against.judged.differ.sum())
        tiles.append(_tile(f"{n_differ:,}", f"of {n:,} labels differ", "compared with the source's"))
    settled = float(evidence.by_expansion.mean())
    if artifact.mode == "approximate":
        tiles.append(_tile(share_text(float(evidence.certified.mean())), "of rows certified", "by their bounds"))
    elif settled == 0.0:
        tiles.append(_tile("Exact", "engine for every row", "no expansion is faster here"))
    else:
        rest = int((~evidence.by_expansion).sum())
        tiles.append(
            _tile(share_text(settled), "without the exact engine", f"which answers {count(rest, 'row', 'rows')}")
        )
    if against is not None and evidence.speed_ratio is not None:
        number, than = speedup(evidence.speed_ratio)
        tiles.append(_tile(number, f"{than} {against.speed_of}", "both measured here"))
    else:
        tiles.append(_tile(time_text(evidence.speed.seconds_per_row), "per row", "measured here"))
    remark = "on disk, complete"
    if against is not None and against.n_bytes:
        remark = f"the source: {bytes_text(against.n_bytes)}"
    tiles.append(_tile(bytes_text(artifact.n_bytes), "artifact", remark))
    return tiles


def _tile(number: str, name: str, remark: str) -> dict[str, str]:
    return {"number": number, "name": name, "remark": remark}


def about_rows(evidence: Evidence, rows_name: str | None) -> list[str]:
    """Return sentences that state which rows were predicted and which were compared."""
    n, refused = len(evidence.positions), np.setdiff1d(np.arange(evidence.n_given), evidence.positions)
    words = [f"{n:,} rows were predicted{f' ({rows_name})' if rows_name else ''}."]
    if evidence.against is not None and len(evidence.against.positions) < n:
        words.append(
            f"Exact values are slow: {len(evidence.against.positions):,} rows, drawn at random with a fixed seed, were "
            "compared with the source; max_rows compares more."
        )
    if len(refused):
        listed = ", ".join(f"{k:,}" for k in refused[:_LISTED_ROWS]) + (", …" if len(refused) > _LISTED_ROWS else "")
        words.append(
            f"{count(len(refused), 'row holds', 'rows hold')} NaN or infinity and "
            f"{'is' if len(refused) == 1 else 'are'} left out ({listed}); predict rejects such rows."
        )
    return words


def missing(artifact: Artifact, evidence: Evidence) -> list[str]:
    """Return the figures missing from the page, with the reasons."""
    gaps = []
    if evidence.against is None:
        gaps.append("Errors, label differences and speedup: no source was given (against=…).")
    if evidence.y is None:
        gaps.append("Accuracy: the true labels or targets were not given (y).")
    if evidence.probabilities is not None and evidence.y is None:
        gaps.append("Calibration needs y as well.")
    if evidence.distances is None and not artifact.is_polynomial:
        why = "each member of an ensemble has its own centers" if artifact.members else "this plan has no expansions"
        gaps.append(f"Distance from the centers: {why}.")
    if artifact.has_labels_alone:
        gaps.append("Decision values and their errors: members vote by label.")
    if artifact.averages:
        gaps.append("Decision values: an ensemble averages probabilities and has none; errors refer to probabilities.")
    return gaps
