"""Several models in one header: a rule for their answers each, as predict/answers.hpp of the core has them.

* Means: sum_k w_k p_k / sum_k w_k, and the same of what each p_k lies between. Weights, products and sums round by less
  than 2 n + 4 units of 2^-53 of numbers up to 1, in all of n members: 8 n units.
* Votes: a member counts w_k for its own label and addend w_k for each other; where its label is not proven, it may move
  one label's sum against another's by (1 - addend) w_k. Sums are within (n + 4) u of the sum of their moduli, four
  times which is allowed on either side.
* Sums: addend + sum_k w_k f_k, each product and sum on a path of n + 3 roundings, weights being within a unit of the
  source's: with u = 1.01 (n + 4) 2^-53 the bound is sum_k |w_k| (bound_k + u |f_k|) + u |addend|. What underflows is
  less than the 1e-37 that narrowing a bound adds.
* Side by side: values of several targets, or functions of classes, of which scores, probabilities and labels are made
  as of any model that has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final

from approxsvm.artifact.views import Artifact
from approxsvm.errors import UnsupportedModelError
from approxsvm.export.c99.answers import Answers
from approxsvm.export.c99.sums import LARGEST
from approxsvm.model.constants import UNIT64

Prefixes = Sequence[str]


def check_rule(artifact: Artifact) -> None:
    """Refuse an ensemble whose rule a header has not.

    Raises
    ------
    UnsupportedModelError
        It has another rule, or numbers beyond float32.
    """
    outputs = artifact.outputs
    is_labeled_sum = artifact.task == "classification" and artifact.n_decisions == 1
    if is_labeled_sum or outputs.of_sums or (artifact.has_labels_alone and outputs.label_rule != "votes"):
        raise UnsupportedModelError(
            f"the C export has means, votes and sums of several models, but no labels by {outputs.label_rule} of "
            "them: export each member by itself"
        )
    if outputs.of_processes:
        raise UnsupportedModelError(
            "the C export has no variances of Gaussian processes: compile it without variance=True, or export its means"
        )
    largest = max(map(abs, (outputs.addend, *_weights(artifact))))
    if artifact.task == "regression" and not largest < LARGEST:
        raise UnsupportedModelError(f"a weight or addend of {largest:.3g} does not fit float32: scale the targets")


def asks_members_for_labels(artifact: Artifact) -> bool:
    """Whether members answer by their labels, rather than by values or probabilities."""
    return bool(artifact.members) and artifact.has_labels_alone


def rule_functions(artifact: Artifact, prefixes: Prefixes) -> Iterator[str]:
    """How the answers of members, whose names have these prefixes, become those of the ensemble, up to its labels."""
    if artifact.averages:
        yield from _mean(artifact, prefixes)
        yield from Answers(artifact).labels()
    elif artifact.has_labels_alone:
        yield from _votes(artifact, prefixes)
    elif artifact.outputs.weights is not None:
        yield from _sum(artifact, prefixes)
    else:
        yield from _side_by_side(artifact, prefixes)
        yield from Answers(artifact).functions()
        if artifact.task == "classification":
            yield from Answers(artifact).labels()


def rule_stack_bytes(artifact: Artifact) -> int:
    """Of the arrays of a call beside those of members, about."""
    per_label = 48 if artifact.averages else 16 if artifact.has_labels_alone else 0
    return per_label * len(artifact.labels) + (0 if per_label else Answers(artifact).stack_bytes)


def _weights(artifact: Artifact) -> list[float]:
    weights = artifact.outputs.weights
    return [1.0] * len(artifact.members) if weights is None else [float(weight) for weight in weights]


def _total(artifact: Artifact) -> float:
    """Of the weights, one after the other as the core adds them: sum() rounds less."""
    return list(accumulate(_weights(artifact)))[-1]


def _for_each(line: str, artifact: Artifact, prefixes: Prefixes, **more: float) -> str:
    """A statement for each member, with literal products: a compiler may fuse its own with the sum."""
    members = zip(prefixes, _weights(artifact), range(len(prefixes)), strict=True)
    return "".join(
        line.format(member=prefix, w=w, modulus=abs(w), against=artifact.outputs.addend * w, k=k, **more)
        for prefix, w, k in members
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


def _sum(artifact: Artifact, prefixes: Prefixes) -> Iterator[str]:
    addend, unit = artifact.outputs.addend, 1.01 * (len(prefixes) + 4) * UNIT64
    members = _for_each(_MEMBER_VALUE, artifact, prefixes, u=unit)
    yield _SUM.format(members=members, addend=addend, modulus=abs(addend), u=unit)


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
/* Means of the members' probabilities, and between what they lie; 0 for @STRANGE@. */
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
    {exact}for (c = 0; c < @n_labels; ++c) scale += @modulus@@(sure[c]);
    scale = {reach!r} * open + 8.0 * ({n}.0 + 4.0) * 0x1p-53 * scale;
    for (c = 0; c < @n_labels; ++c) {{
        if (c != winner && !(sure[winner] - sure[c] > scale){ties}) return 0;
    }}
    return 1;
}}
/* The position of a row's label, by the votes of members, and whether it is proven to be the exact models'. */
static inline int @label@@(const @ROW@ row[], int *is_proven) {{
    double sums[@n_labels], sure[@n_labels], open = 0.0;
    int one, label;
{members}{divided}    if (is_proven) *is_proven = @is_voted@@(sure, open);
    return @most_votes@@(sums);
}}
"""
# As scikit-learn does, which brings together what rounding has told apart.
_DIVIDED: Final = "    for (label = 0; label < @n_labels; ++label) sums[label] /= {total!r};\n"
_MEMBER_VOTE: Final = """\
    label = {member}_label_(row, &one);
    @count@@(label, one, {w!r}, {against!r}, {k} == 0, sums, sure, &open);
"""

_SUM: Final = """\
/* The sum of the members' values by weight, and its bound; 0 for @STRANGE@: NaN, with an infinite bound. */
static inline int @evaluate@@(const @ROW@ row[], double values[], float bounds[]) {{
    double sum = {addend!r}, reach = {u!r} * {modulus!r}, value[1];
    float bound[1];
    int is_known = 1;
{members}    is_known &= @modulus@@(sum) < 1e37;
    values[0] = is_known ? sum : (double)@float_of@@(0x7FC00000u);
    bounds[0] = is_known ? @above@@(reach) : @float_of@@(0x7F800000u);
    return is_known;
}}
"""
_MEMBER_VALUE: Final = """\
    is_known &= {member}_evaluate_(row, value, bound);
    sum += {w!r} * value[0];
    reach += {modulus!r} * ((double)bound[0] + {u!r} * @modulus@@(value[0]));
"""

_SIDE_BY_SIDE: Final = """\
/* All decision values and their bounds; 0 for @STRANGE@: NaN, with infinite bounds. */
static inline int @evaluate@@(const @ROW@ row[], double values[], float bounds[]) {{
    int is_known = 1, k;
{members}    /* What other members know has no room for its narrowing. */
    for (k = 0; k < @n_values && !is_known; ++k) {{
        values[k] = (double)@float_of@@(0x7FC00000u);
        bounds[k] = @float_of@@(0x7F800000u);
    }}
    return is_known;
}}
"""
_MEMBER_VALUES: Final = "    is_known &= {member}_evaluate_(row, values + {first}, bounds + {first});\n"
