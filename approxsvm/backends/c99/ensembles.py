"""Export of an ensemble to one header, which calls the members and combines their outputs.

The core's code multiplies the members' outputs by a matrix, and derives the bounds
(cpp/include/approxsvm/program/ensembles.h). The products (or the members' values, if there is no matrix) are treated
like a single model's values. If an ensemble returns its members' labels, these are certified by the members' bounds.
"""

from collections.abc import Sequence
from itertools import accumulate, chain

import numpy as np

from approxsvm.artifact.views import Artifact
from approxsvm.backends.c99.answers import Answers, Arrays, Macros
from approxsvm.backends.c99.device.router import smallest
from approxsvm.backends.c99.sums import LARGEST
from approxsvm.errors import UnsupportedModelError
from approxsvm.ir.ensembles.combination import label_positions


def check_rule(artifact: Artifact) -> None:
    """Raise UnsupportedModelError if the C export does not support an ensemble's members, weights or addends."""
    combination = artifact.combination
    if any(member.members for member in artifact.members):
        raise UnsupportedModelError("the C export has no ensembles of ensembles: export each member by itself")
    if combination.weights is None or combination.addends is None:
        return
    largest = max(np.abs(combination.weights).max(), np.abs(combination.addends).max())
    if artifact.n_decisions and not largest < LARGEST:
        raise UnsupportedModelError(f"a weight or addend of {largest:.3g} does not fit float32: scale the targets")


def rule_arrays(artifact: Artifact) -> Arrays:
    """Return the arrays of an ensemble's combination rule, by name (cpp/include/approxsvm/exported/ensembles.h)."""
    combination, arrays = artifact.combination, Answers(artifact).arrays
    sizes = [combination.n_columns_of(member) for member in artifact.members]
    firsts = list(accumulate(sizes[:-1], initial=0))
    numbers: dict[str, list[int]] = {}
    if artifact.of_targets:
        positions = label_positions(artifact.labels, artifact.members)
        firsts = list(accumulate(map(len, positions[:-1]), initial=0))
        numbers["positions_"] = list(chain.from_iterable(positions))
    elif combination.weights is not None and combination.addends is not None:
        weights, starts, values = combination.by_column()
        arrays |= {"weights_": weights, "addends_": combination.addends}
        numbers |= {"starts_": starts.tolist(), "places_": values.tolist()}
    numbers |= {"member_firsts_": firsts, "member_sizes_": sizes}
    return arrays | {name: smallest(np.array(some, np.intp)) for name, some in numbers.items()}


def answers_of(artifact: Artifact, member: Artifact) -> Answers:
    """Return the outputs that a header needs from a member of an ensemble, or from a single model."""
    asks = bool(artifact.members) and artifact.has_labels_alone
    in_sums = artifact.combination.weights is not None and not asks
    return Answers(member, asks or not artifact.members, only_labels=asks, in_sums=in_sums)


def member_macros(artifact: Artifact) -> Macros:
    """Return the macros that an ensemble needs for each member in addition to the output macros."""
    is_summand = artifact.combination.weights is not None and not artifact.counts_votes
    return {"is_summand_": int(is_summand), "is_target_": int(artifact.of_targets)}


def rule_macros(artifact: Artifact, prefixes: Sequence[str]) -> Macros:
    """Return an ensemble's macros, which define sizes, outputs, and the member functions with the given prefixes."""
    weights = artifact.combination.weights
    function = "evaluate_" if weights is None else "summands_"
    if artifact.has_labels_alone:
        function = "own_targets_" if artifact.of_targets else "label_"
    return Answers(artifact).macros | {
        "n_members_": len(artifact.members),
        "n_room_": _n_room(artifact),
        "votes_": int(artifact.counts_votes),
        "n_columns_": 0 if weights is None else weights.shape[1],
        "members_(CASE)": " ".join(f"CASE({m}, {prefix}_{function})" for m, prefix in enumerate(prefixes)),
    }


def rule_stack_bytes(artifact: Artifact) -> int:
    """Return the approximate size of a call's local arrays, except those in the members' functions."""
    if artifact.of_targets:
        return 8 * artifact.n_targets + 12 * max(member.n_decisions for member in artifact.members)
    if artifact.counts_votes:
        return 24 * len(artifact.labels)
    of_sums = 0 if artifact.combination.weights is None else 8 * artifact.n_values + 24 * _n_room(artifact)
    return of_sums + Answers(artifact).stack_bytes


def _n_room(artifact: Artifact) -> int:
    return max(max(len(member.labels), member.n_decisions) for member in artifact.members)
