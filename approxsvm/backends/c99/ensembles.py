"""Several models in one header: calls of the members, and what combines their answers.

The rules, and the derivations of their bounds, are the core's (cpp/include/approxsvm/program/ensembles.h). If labels
depend on sums, these are treated like the values of a single model. If the labels or values of all members are
returned, the members' own bounds prove them.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final

import numpy as np

from approxsvm.artifact.views import Artifact
from approxsvm.backends.c99.answers import Answers, Arrays
from approxsvm.backends.c99.device_router import smallest
from approxsvm.backends.c99.program import filled
from approxsvm.backends.c99.sums import LARGEST
from approxsvm.errors import UnsupportedModelError

Prefixes = Sequence[str]


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


def rule_functions(artifact: Artifact, prefixes: Prefixes) -> Iterator[str]:
    """Yield functions that combine the answers of members with these prefixes, up to the ensemble's labels."""
    if artifact.averages:
        yield _with_members("MEAN", [_MEMBER_SHARES.format(k=k, member=one) for k, one in enumerate(prefixes)])
        yield from Answers(artifact).labels()
    elif artifact.of_targets:
        yield _with_members("TARGETS", _target_calls(artifact, prefixes))
    elif artifact.has_labels_alone:
        firsts = accumulate((len(member.labels) for member in artifact.members[:-1]), initial=0)
        calls = zip(prefixes, firsts, strict=True)
        yield _with_members(
            "MEMBER_VOTES", [_MEMBER_VOTE.format(k=k, member=m, first=f) for k, (m, f) in enumerate(calls)]
        )
    else:
        firsts = accumulate((member.n_decisions for member in artifact.members[:-1]), initial=0)
        values = [_MEMBER_VALUES.format(member=one, first=first) for one, first in zip(prefixes, firsts, strict=True)]
        adds_up = _adds_up(artifact)
        yield _with_members("SUM" if adds_up else "SIDE_BY_SIDE", _sum_calls(artifact, prefixes) if adds_up else values)
        yield from Answers(artifact).functions()
        if artifact.task == "classification":
            yield from Answers(artifact).labels()


def _with_members(name: str, calls: Sequence[str]) -> str:
    """Return a part with the statements for all members."""
    return filled(name, members=[line for call in calls for line in call.split("\n")])


def _adds_up(artifact: Artifact) -> bool:
    return artifact.n_decisions > 0 and artifact.outputs.weights is not None


def rule_arrays(artifact: Artifact) -> Arrays:
    """Return the arrays read by these functions, by name."""
    arrays = {} if asks_members_for_labels(artifact) else Answers(artifact).arrays
    outputs, weights = artifact.outputs, np.array(_weights(artifact))
    if asks_members_for_labels(artifact):
        places = {label: place for place, label in enumerate(artifact.labels.tolist())}
        positions = [places[label] for member in artifact.members for label in member.labels.tolist()]
        arrays["positions_"] = smallest(np.array(positions, np.intp))
    if _adds_up(artifact):
        sums, addends = outputs.sums
        return arrays | {"weights_": np.ascontiguousarray(sums), "addends_": np.array(addends)}
    if not artifact.averages and (artifact.of_targets or not asks_members_for_labels(artifact)):
        return arrays
    arrays["weights_"] = weights
    if artifact.averages:  # weights are added one by one as in the core: the built-in sum() rounds less
        arrays["total_"] = np.array(list(accumulate(weights.tolist()))[-1:])
    return arrays


def rule_constants(artifact: Artifact) -> dict[str, int]:
    """Return the integers used by these functions, by name."""
    n_own = [max(len(member.labels), member.n_decisions) for member in artifact.members]
    numbers = {"n_members_": len(artifact.members), "n_room_": max(n_own)}
    if _adds_up(artifact):
        numbers["n_columns_"] = artifact.outputs.sums[0].shape[1]
    return numbers


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


def _sum_calls(artifact: Artifact, prefixes: Prefixes) -> list[str]:
    calls, column, several = [], 0, adds_scores(artifact)
    for prefix, member in zip(prefixes, artifact.members, strict=True):
        classifies = member.task == "classification"
        call = _MEMBER_VALUE if not classifies else _MEMBER_SHARE if Answers(member).kind else _MEMBER_SCORE
        first = 0 if several or not classifies else member.labels.tolist().index(artifact.labels[:1].tolist()[0])
        n = 1 if classifies and not several else len(member.labels) or member.n_decisions
        calls.append(call.format(member=prefix, n=n, first=first))
        calls.append(f"@add@@({column}, {n}, number + {first}, off + {first}, values, reach);")
        column += n
    return calls


def _target_calls(artifact: Artifact, prefixes: Prefixes) -> list[str]:
    calls, target, position = [], 0, 0
    for prefix, member in zip(prefixes, artifact.members, strict=True):
        call: str = _MEMBER_SIGNS if member.task == "regression" else _MEMBER_LABEL
        calls.append(call.format(member=prefix, target=target, position=position, n=member.n_decisions))
        target += member.n_decisions if member.task == "regression" else 1
        position += len(member.labels)
    return calls


_MEMBER_SHARES: Final = """\
is_known &= {member}_row_shares_(row, one, low, high);
approxsvm_add_shares(@n_labels, @weights@@[{k}], one, low, high, p, lowest, highest);"""
_MEMBER_VOTE: Final = """\
label = (int)@positions@@[{first} + {member}_label_(row, &one)];
is_known &= one >= 0;
approxsvm_count_vote(label, one, @weights@@[{k}], sums, sure, &open);"""
_MEMBER_VALUE: Final = """\
is_known &= {member}_evaluate_(row, number, bound);
for (k = 0; k < {n}; ++k) off[k] = (double)bound[k];"""
_MEMBER_SHARE: Final = """\
is_known &= {member}_row_shares_(row, number, off, high);
@farther@@({n} + {first}, number, off, high);"""
_MEMBER_SCORE: Final = """\
is_known &= {member}_evaluate_(row, value, bound);
{member}_own_scores_(value, number);
{member}_own_score_ends_(value, bound, off, high);
@farther@@({n}, number, off, high);"""
_MEMBER_LABEL: Final = """\
labels[{target}] = (int)@positions@@[{position} + {member}_label_(row, is_proven + {target})];
is_known &= is_proven[{target}] >= 0;"""
_MEMBER_SIGNS: Final = """\
is_known &= {member}_evaluate_(row, values, bounds);
@signs@@({n}, values, bounds, labels + {target}, is_proven + {target});"""
_MEMBER_VALUES: Final = "is_known &= {member}_evaluate_(row, values + {first}, bounds + {first});"
