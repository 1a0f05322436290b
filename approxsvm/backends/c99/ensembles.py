"""Several models in one header: calls of the members, and what combines their answers.

The rules, and the derivations of their bounds, are the core's (cpp/include/approxsvm/program/ensembles.h). If labels
depend on sums, these are treated like the values of a single model. If the labels or values of all members are
returned, the members' own bounds prove them.
"""

from collections.abc import Sequence
from itertools import accumulate, chain

import numpy as np

from approxsvm.artifact.views import Artifact
from approxsvm.backends.c99.answers import Answers, Arrays, Macros
from approxsvm.backends.c99.device_router import smallest
from approxsvm.backends.c99.sums import LARGEST
from approxsvm.errors import UnsupportedModelError


def check_rule(artifact: Artifact) -> None:
    """Raise UnsupportedModelError if the C export does not support an ensemble's rule or its numbers."""
    outputs = artifact.outputs
    if any(member.members for member in artifact.members):
        raise UnsupportedModelError("the C export has no ensembles of ensembles: export each member by itself")
    largest = max(map(abs, (outputs.addend, *_weights(artifact))))
    if artifact.n_decisions and not largest < LARGEST:
        raise UnsupportedModelError(f"a weight or addend of {largest:.3g} does not fit float32: scale the targets")


def asks_members_for_labels(artifact: Artifact) -> bool:
    """Return whether members contribute labels rather than values or probabilities."""
    return bool(artifact.members) and artifact.has_labels_alone


def _adds_up(artifact: Artifact) -> bool:
    return artifact.n_decisions > 0 and artifact.outputs.weights is not None


def rule_arrays(artifact: Artifact) -> Arrays:
    """Return the arrays of an ensemble, by name (cpp/include/approxsvm/exported/ensembles.h)."""
    places = {label: place for place, label in enumerate(artifact.labels.tolist())}
    sizes = [member.n_decisions for member in artifact.members]
    # A regression has the labels of a target by its sign
    positions = [[places[label] for label in one.labels.tolist()] or [0, 1] for one in artifact.members]
    firsts = list(accumulate(map(len, positions[:-1]), initial=0))
    arrays = Answers(artifact).arrays | {"weights_": np.array(_weights(artifact))}
    if artifact.averages:  # weights are added one by one as in the core: the built-in sum() rounds less
        arrays["total_"] = np.array(list(accumulate(arrays["weights_"].tolist()))[-1:])
    elif artifact.of_targets:
        sizes = [one.n_decisions if one.task == "regression" else 1 for one in artifact.members]
    elif _adds_up(artifact):
        sums, addends = artifact.outputs.sums
        arrays |= {"weights_": np.ascontiguousarray(sums), "addends_": np.array(addends)}
        summands = [_summands(artifact, member) for member in artifact.members]
        firsts, sizes = [first for first, _ in summands], [size for _, size in summands]
    numbers = {"positions_": list(chain.from_iterable(positions)), "member_firsts_": firsts, "member_sizes_": sizes}
    return arrays | {name: smallest(np.array(some, np.intp)) for name, some in numbers.items()}


def _summands(artifact: Artifact, member: Artifact) -> tuple[int, int]:
    """Return the first of a member's numbers that sums take, and how many."""
    if adds_scores(artifact) or member.task != "classification":
        return 0, len(member.labels) or member.n_decisions
    return member.labels.tolist().index(artifact.labels[:1].tolist()[0]), 1


def answers_of(artifact: Artifact, member: Artifact) -> Answers:
    """Return what is needed of the answers of a member, or of a model alone."""
    asks = asks_members_for_labels(artifact)
    return Answers(member, asks or not artifact.members, only_labels=asks, in_sums=adds_scores(artifact))


def member_macros(artifact: Artifact) -> Macros:
    """Return what an ensemble needs of its members in addition to their answers."""
    return {"is_summand_": int(_adds_up(artifact)), "is_target_": int(artifact.of_targets)}


def rule_macros(artifact: Artifact, prefixes: Sequence[str]) -> Macros:
    """Return the sizes of an ensemble, and what it takes of members with these prefixes."""
    n_own = [max(len(member.labels), member.n_decisions) for member in artifact.members]
    found: Macros = {
        "n_members_": len(artifact.members),
        "n_room_": max(n_own),
        "averages_": int(artifact.averages),
        "votes_": int(artifact.counts_votes),
        "adds_": int(_adds_up(artifact)),
        "n_columns_": artifact.outputs.sums[0].shape[1] if _adds_up(artifact) else 0,
    }
    asked = {"averages_": "row_shares_", "votes_": "label_", "adds_": "summands_"}
    others = "own_targets_" if artifact.of_targets else "evaluate_"
    function = next((one for name, one in asked.items() if found[name]), others)
    answers = Answers(artifact).macros
    answers["has_shares_"] = int(answers["has_shares_"] and not artifact.averages)
    return (
        answers
        | found
        | {"members_(CASE)": " ".join(f"CASE({m}, {prefix}_{function})" for m, prefix in enumerate(prefixes))}
    )


def rule_stack_bytes(artifact: Artifact) -> int:
    """Return the approximate size of the arrays of a call, members excluded."""
    if artifact.of_targets:
        return 8 * artifact.n_targets + 12 * max(member.n_decisions for member in artifact.members)
    per_label = 48 if artifact.averages else 16 if artifact.has_labels_alone else 0
    return per_label * len(artifact.labels) + (0 if per_label else Answers(artifact).stack_bytes)


def _weights(artifact: Artifact) -> list[float]:
    weights = artifact.outputs.weights
    return [1.0] * len(artifact.members) if weights is None else weights.ravel().tolist()


def adds_scores(artifact: Artifact) -> bool:
    """Return whether sums of several classes use all outputs of members: values, probabilities or else scores."""
    return artifact.outputs.weights is not None and artifact.outputs.weights.ndim == 2
