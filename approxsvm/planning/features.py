"""Lowering of linear models on feature maps, which need no planning, only a check that the options suit the model."""

from __future__ import annotations

from approxsvm.artifact import terms, writer
from approxsvm.errors import InputError, UnsupportedModelError
from approxsvm.expansion import taylor_features
from approxsvm.ir.single_model import TermsModel
from approxsvm.ir.taylor_model import TaylorModel
from approxsvm.planning.request import Built, Lowering, Request


def build_taylor(model: TaylorModel, request: Request) -> Built:
    """Lower a Taylor model, which is itself an expansion and has no exact engine as a fallback."""
    if request.mode != "approximate":
        raise UnsupportedModelError(
            f"mode {request.mode!r} needs support vectors, which a {model.source} does not have: compile it with "
            "mode='approximate', where certified(X) tells which labels are proven: all except near-ties in float32"
        )
    if (request.limits.degree, request.limits.n_centers) not in (("auto", "auto"), (model.degree, 1)):
        raise InputError(
            f"a {model.source} is an expansion of degree {model.degree} about 1 center; neither can be chosen"
        )
    request.check_plan(model, "expansions")
    reason = "the model itself is an expansion about the origin, so nothing is truncated"
    plan = request.plan_of(model, "expansions", reason, n_centers=1, degree=model.degree)
    return writer.build_taylor(model, *taylor_features.expand_and_certify(model), plan=plan), ()


def build_terms(model: TermsModel, request: Request) -> Built:
    """Lower a sum of terms that are not kernels to the exact engine."""
    if request.mode == "approximate":
        raise UnsupportedModelError(f"a {model.source} has no expansion: compile it with mode='certified' or 'exact'")
    if (request.limits.degree, request.limits.n_centers) != ("auto", "auto"):
        raise UnsupportedModelError(f"a {model.source} has no expansion: leave degree and n_centers out")
    request.check_positive_tolerance()
    request.check_plan(model, "exact")
    reason = f"the model is a sum of {model.n_terms:,} {model.kernel}s and is evaluated directly"
    plan = request.plan_of(model, "exact", reason)
    return terms.build_terms(model, tolerance=request.tolerance, plan=plan), ()


LOWERINGS: dict[str, Lowering] = {TaylorModel.kind: build_taylor, TermsModel.kind: build_terms}
