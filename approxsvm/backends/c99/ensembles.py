"""Several models in one header: rules that combine the members' answers, as predict/answers.hpp of the core does.

* Means: sum_k w_k p_k / sum_k w_k, applied to the p_k and to both ends of their intervals. Weights, products and sums
  over n members make less than 2 n + 2 roundings of 2^-53, of numbers up to 1, here and in the source: 8 n are allowed.
* Votes: a member adds w_k for its own label and addend w_k for every other label. If its label is not proven, the
  difference of two labels' sums may change by (1 - addend) w_k. Rounding changes a sum by at most (n + 4) u times the
  sum of its absolute values; four times as much is allowed on either side.
* Sums: addend + sum_k w_k f_k. Each term passes through at most n + 3 roundings, and weights are within one unit of
  the source's: with u = 1.01 (n + 4) 2^-53, the bound is sum_k |w_k| (bound_k + u |f_k|) + u |addend|. Underflow
  contributes less than the 1e-37 added by the narrowing of a bound. A classifier contributes the probability of the
  first label or, for sums over several classes, all probabilities or else scores; the error of each is its distance
  to the farther end of its interval. If labels depend on sums, these are treated like the values of a single model.
* Parallel labels: each member's own label, or the signs of a regression's values, certified by the member's bounds.
* Parallel values: the values of several targets, or functions of classes; scores, probabilities and labels are derived
  from them as in any model that has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final

import numpy as np

from approxsvm.artifact.views import Artifact
from approxsvm.backends.c99.answers import Answers
from approxsvm.backends.c99.device_router import smallest
from approxsvm.backends.c99.probabilities import Arrays, shares_of
from approxsvm.backends.c99.sums import LARGEST
from approxsvm.errors import UnsupportedModelError
from approxsvm.ir.constants import UNIT64

Prefixes = Sequence[str]


def check_rule(artifact: Artifact) -> None:
    """Refuse an ensemble whose rule the C export does not support.

    Raises
    ------
    UnsupportedModelError
        The rule is not supported, or a number does not fit float32.
    """
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
        yield from _mean(artifact, prefixes)
        yield from Answers(artifact).labels()
    elif artifact.of_targets:
        yield from _targets(artifact, prefixes)
    elif artifact.has_labels_alone:
        yield from _votes(artifact, prefixes)
    else:
        yield from (_sum if _adds_up(artifact) else _side_by_side)(artifact, prefixes)
        yield from Answers(artifact).functions()
        if artifact.task == "classification":
            yield from Answers(artifact).labels()


def _adds_up(artifact: Artifact) -> bool:
    return artifact.n_decisions > 0 and artifact.outputs.weights is not None


def rule_arrays(artifact: Artifact) -> Arrays:
    """Return the arrays read by these functions, by name."""
    if not asks_members_for_labels(artifact):
        return Answers(artifact).arrays | (_sum_arrays(artifact) if _adds_up(artifact) else {})
    places = {label: place for place, label in enumerate(artifact.labels.tolist())}
    positions = [places[label] for member in artifact.members for label in member.labels.tolist()]
    return {"positions_": smallest(np.array(positions, np.intp))}


def rule_stack_bytes(artifact: Artifact) -> int:
    """Return the approximate size of the arrays of a call, members excluded."""
    if artifact.of_targets:
        return 8 * artifact.n_targets + 12 * max(member.n_decisions for member in artifact.members)
    per_label = 48 if artifact.averages else 16 if artifact.has_labels_alone else 0
    return per_label * len(artifact.labels) + (0 if per_label else Answers(artifact).stack_bytes)


def _weights(artifact: Artifact) -> list[float]:
    weights = artifact.outputs.weights
    return [1.0] * len(artifact.members) if weights is None else weights.ravel().tolist()


def _total(artifact: Artifact) -> float:
    """Return the sum of the weights, added one by one as in the core: the built-in sum() rounds less."""
    return list(accumulate(_weights(artifact)))[-1]


def _for_each(line: str, artifact: Artifact, prefixes: Prefixes) -> str:
    """Return a statement for each member, with products as literals: a compiler might fuse a product with the sum.

    `first` is the position of the member's first label in the array of positions.
    """
    firsts = accumulate((len(member.labels) for member in artifact.members[:-1]), initial=0)
    members = zip(prefixes, _weights(artifact), range(len(prefixes)), firsts, strict=True)
    return "".join(
        line.format(member=prefix, w=w, against=artifact.outputs.addend * w, k=k, first=first)
        for prefix, w, k, first in members
    )


def _mean(artifact: Artifact, prefixes: Prefixes) -> Iterator[str]:
    members = _for_each(_MEMBER_SHARES, artifact, prefixes)
    yield _MEAN.format(members=members, total=_total(artifact), n=len(prefixes))


def _votes(artifact: Artifact, prefixes: Prefixes) -> Iterator[str]:
    against = artifact.outputs.addend
    yield _VOTES.format(
        members=_for_each(_MEMBER_VOTE, artifact, prefixes),
        reach=1.0 - against,
        n=len(prefixes),
        divided=_DIVIDED.format(total=_total(artifact)) if against else "",
        ties=" && !(open == 0.0 && sure[winner] == sure[c])",
        exact="if (open == 0.0) return 1;\n    " if not against else "",
    )


def adds_scores(artifact: Artifact) -> bool:
    """Return whether sums of several classes use all outputs of members: values, probabilities or else scores."""
    return artifact.outputs.weights is not None and artifact.outputs.weights.ndim == 2


def _sum_arrays(artifact: Artifact) -> Arrays:
    weights, addends = artifact.outputs.weights, np.array([artifact.outputs.addend])
    assert weights is not None
    if adds_scores(artifact):
        weights, addends = weights[:, :-1], weights[:, -1].copy()
    return {"weights_": np.ascontiguousarray(weights), "addends_": addends}


def _sum(artifact: Artifact, prefixes: Prefixes) -> Iterator[str]:
    lines, column, several = "", 0, adds_scores(artifact)
    for prefix, member in zip(prefixes, artifact.members, strict=True):
        is_share = member.task == "classification"
        line: str = _MEMBER_VALUE if not is_share else _MEMBER_SHARE if shares_of(member) else _MEMBER_SCORE
        first = 0 if several or not is_share else member.labels.tolist().index(artifact.labels[:1].tolist()[0])
        n = 1 if is_share and not several else len(member.labels) or member.n_decisions
        lines += line.format(member=prefix, column=column, n=n, first=first, n_values=member.n_decisions)
        column += n
    room = max(max(len(member.labels), member.n_decisions) for member in artifact.members)
    declared = f"    double high[{room}];\n" if "high" in lines else ""
    declared += f"    float bound[{room}];\n" if "bound" in lines else ""
    declared += f"    double value[{room}];\n" if "value," in lines else ""
    yield _SUM.format(members=lines, declared=declared, room=room, n=column, u=1.01 * (column + 4) * UNIT64)


def _targets(artifact: Artifact, prefixes: Prefixes) -> Iterator[str]:
    lines, target, position = "", 0, 0
    for prefix, member in zip(prefixes, artifact.members, strict=True):
        line: str = _MEMBER_SIGNS if member.task == "regression" else _MEMBER_LABEL
        lines += line.format(member=prefix, target=target, position=position, n=member.n_decisions)
        target += member.n_decisions if member.task == "regression" else 1
        position += len(member.labels)
    room = max(member.n_decisions for member in artifact.members)
    yield _TARGETS.format(members=lines, room=room)


def _side_by_side(artifact: Artifact, prefixes: Prefixes) -> Iterator[str]:
    firsts = accumulate((member.n_decisions for member in artifact.members[:-1]), initial=0)
    lines = [_MEMBER_VALUES.format(member=prefix, first=first) for prefix, first in zip(prefixes, firsts, strict=True)]
    yield _SIDE_BY_SIDE.format(members="".join(lines))


_MEAN: Final = """\
/* Adds a member's probabilities times its weight. */
static inline void @add@@(double weight, const double one[], const double low[], const double high[], double p[],
                          double lowest[], double highest[]) {{
    int c;
    for (c = 0; c < @n_labels; ++c) {{
        p[c] += weight * one[c];
        lowest[c] += weight * low[c];
        highest[c] += weight * high[c];
    }}
}}
/* Means of the members' probabilities, and their bounds; 0 for @STRANGE@. */
static inline int @row_shares@@(const @ROW@ row[], double p[], double lowest[], double highest[]) {{
    double one[@n_labels], low[@n_labels], high[@n_labels];
    int is_known = 1, c;
    for (c = 0; c < @n_labels; ++c) p[c] = lowest[c] = highest[c] = 0.0;
{members}    for (c = 0; c < @n_labels; ++c) {{
        p[c] /= {total!r};
        lowest[c] = lowest[c] / {total!r} - {n}.0 * 0x1p-50;
        highest[c] = highest[c] / {total!r} + {n}.0 * 0x1p-50;
    }}
    return is_known;
}}
"""
_MEMBER_SHARES: Final = """\
    is_known &= {member}_row_shares_(row, one, low, high);
    @add@@({w!r}, one, low, high, p, lowest, highest);
"""

_VOTES: Final = """\
/* Counts a member's vote. */
static inline void @count@@(int label, int is_proven, double weight, double against, int is_first, double sums[],
                            double sure[], double *open) {{
    int c;
    for (c = 0; c < @n_labels; ++c) {{
        const double counts = c == label ? weight : against;
        sums[c] = (is_first ? 0.0 : sums[c]) + counts;
        sure[c] = (is_first ? 0.0 : sure[c]) + (is_proven ? counts : 0.0);
    }}
    *open += is_proven ? 0.0 : weight;
}}
static inline int @most_votes@@(const double sums[]) {{
    int best = 0, c;
    for (c = 1; c < @n_labels; ++c) best = sums[c] > sums[best] ? c : best;
    return best;
}}
/* Whether the winner is the same however the members vote whose labels are not proven, `open` by weight. */
static inline int @is_voted@@(const double sure[], double open) {{
    const int winner = @most_votes@@(sure);
    double scale = open;
    int c;
    {exact}for (c = 0; c < @n_labels; ++c) scale += approxsvm_abs(sure[c]);
    scale = {reach!r} * open + 8.0 * ({n}.0 + 4.0) * 0x1p-53 * scale;
    for (c = 0; c < @n_labels; ++c) {{
        if (c != winner && !(sure[winner] - sure[c] > scale){ties}) return 0;
    }}
    return 1;
}}
/* The position of a row's label, by the votes of members@ZERO@, and whether it is proven to be the exact models', -1
   for such a row, which no vote of other members makes up for. */
static inline int @label@@(const @ROW@ row[], int *is_proven) {{
    double sums[@n_labels], sure[@n_labels], open = 0.0;
    int is_known = 1, one, label;
{members}    if (is_proven) *is_proven = -1;
    if (!is_known) return 0;
{divided}    if (is_proven) *is_proven = @is_voted@@(sure, open);
    return @most_votes@@(sums);
}}
"""
# As in scikit-learn; the division may merge sums that differ only by rounding.
_DIVIDED: Final = "    for (label = 0; label < @n_labels; ++label) sums[label] /= {total!r};\n"
_MEMBER_VOTE: Final = """\
    label = (int)@positions@@[{first} + {member}_label_(row, &one)];
    is_known &= one >= 0;
    @count@@(label, one, {w!r}, {against!r}, {k} == 0, sums, sure, &open);
"""

_SUM: Final = """\
/* What numbers between low and high are off by at most. */
static inline void @farther@@(int n, const double number[], double low[], const double high[]) {{
    int k;
    for (k = 0; k < n; ++k) {{
        const double above = high[k] - number[k], below = number[k] - low[k];
        low[k] = (above > below ? above : below) + 0x1p-52 * (1.0 + approxsvm_abs(number[k]));
    }}
}}
/* Adds n numbers of a member by their weights, from a column on, and what they are off by. */
static inline void @add@@(int column, int n, const double number[], const double off[], double sums[],
                          double reach[]) {{
    int i, k;
    for (k = 0; k < @n_values; ++k) {{
        for (i = 0; i < n; ++i) {{
            const double weight = @weights@@[k * {n} + column + i];
            sums[k] += weight * number[i];
            reach[k] += approxsvm_abs(weight) * (1.000001 * off[i] + {u!r} * approxsvm_abs(number[i]));
        }}
    }}
}}
/* Sums of the members' numbers by weight, and their bounds; 0 for @STRANGE@: NaN, with infinite bounds. */
static inline int @evaluate@@(const @ROW@ row[], double values[], float bounds[]) {{
    double reach[@n_values], number[{room}], off[{room}];
{declared}    int is_known = 1, k;
    for (k = 0; k < @n_values; ++k) {{
        values[k] = @addends@@[k];
        reach[k] = {u!r} * approxsvm_abs(values[k]);
    }}
{members}    for (k = 0; k < @n_values; ++k) is_known &= approxsvm_abs(values[k]) < 1e37;
    for (k = 0; k < @n_values; ++k) {{
        values[k] = is_known ? values[k] : (double)approxsvm_nan32();
        bounds[k] = is_known ? @above@@(reach[k]) : approxsvm_infinity32();
    }}
    return is_known;
}}
"""
_MEMBER_VALUE: Final = """\
    is_known &= {member}_evaluate_(row, number, bound);
    for (k = 0; k < {n}; ++k) off[k] = (double)bound[k];
    @add@@({column}, {n}, number, off, values, reach);
"""
_MEMBER_SHARE: Final = """\
    is_known &= {member}_row_shares_(row, number, off, high);
    @farther@@({n} + {first}, number, off, high);
    @add@@({column}, {n}, number + {first}, off + {first}, values, reach);
"""
_MEMBER_SCORE: Final = """\
    is_known &= {member}_evaluate_(row, value, bound);
    {member}_scores_(value, number);
    {member}_score_ends_(value, bound, off, high);
    @farther@@({n}, number, off, high);
    @add@@({column}, {n}, number, off, values, reach);
"""

_TARGETS: Final = """\
/* The positions of a row's labels, one for each target; whether each is proven to be the exact model's. */
static inline void @targets@@(const @ROW@ row[], int labels[], int is_proven[]) {{
    double values[{room}];
    float bounds[{room}];
    int is_known = 1, k;
    (void)values, (void)bounds;
{members}    for (k = 0; k < @n_targets; ++k) is_proven[k] = is_known && is_proven[k] > 0;
}}
"""
_MEMBER_LABEL: Final = """\
    labels[{target}] = (int)@positions@@[{position} + {member}_label_(row, is_proven + {target})];
    is_known &= is_proven[{target}] >= 0;
"""
_MEMBER_SIGNS: Final = """\
    is_known &= {member}_evaluate_(row, values, bounds);
    for (k = 0; k < {n}; ++k) {{
        labels[{target} + k] = values[k] > 0.0 ? 1 : 0;
        is_proven[{target} + k] = approxsvm_abs(values[k]) > (double)bounds[k];
    }}
"""

_SIDE_BY_SIDE: Final = """\
/* All decision values and their bounds; 0 for @STRANGE@: NaN, with infinite bounds. */
static inline int @evaluate@@(const @ROW@ row[], double values[], float bounds[]) {{
    int is_known = 1, k;
{members}    /* What other members know has no room for its narrowing. */
    for (k = 0; k < @n_values && !is_known; ++k) {{
        values[k] = (double)approxsvm_nan32();
        bounds[k] = approxsvm_infinity32();
    }}
    return is_known;
}}
"""
_MEMBER_VALUES: Final = "    is_known &= {member}_evaluate_(row, values + {first}, bounds + {first});\n"
