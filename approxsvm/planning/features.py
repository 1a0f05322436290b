"""From linear models on features to their artifacts: there is nothing to choose, and what was asked for has to suit."""

from __future__ import annotations

from approxsvm.artifact import cosines, writer
from approxsvm.errors import UnsupportedModelError
from approxsvm.expansion import taylor_features
from approxsvm.model.cosine_model import CosineModel
from approxsvm.model.taylor_model import TaylorModel
from approxsvm.planning.request import Built, Request, Way


def build_taylor(model: TaylorModel, request: Request) -> Built:
    """The model itself is an expansion, and there is no exact engine to fall back on."""
    if request.mode != "approximate":
        raise UnsupportedModelError(
            f"mode {request.mode!r} falls back on support vectors, which a {model.source} has none of: compile it with "
            "mode='approximate', where certified(X) says which labels are proven; all but those within float32 rounding"
        )
    if (request.limits.degree, request.limits.n_centers) not in (("auto", "auto"), (model.degree, 1)):
        raise ValueError(
            f"a {model.source} is an expansion of degree {model.degree} about 1 center, which is not chosen"
        )
    plan = "the model is an expansion about the origin itself, so nothing is cut off"
    return writer.build_taylor(model, *taylor_features.expand_and_certify(model), plan=plan), ()


def build_cosines(model: CosineModel, request: Request) -> Built:
    """The engines of cosines."""
    if request.mode == "approximate":
        raise UnsupportedModelError(f"a {model.source} has no expansion: compile it with mode='certified' or 'exact'")
    if (request.limits.degree, request.limits.n_centers) != ("auto", "auto"):
        raise UnsupportedModelError(f"a {model.source} has no expansion: leave degree and n_centers out")
    request.check_positive_tolerance()
    plan = f"the model is a sum of {model.n_cosines:,} cosines, which is added up as it is"
    return cosines.build_cosines(model, tolerance=request.tolerance, plan=plan), ()


WAYS: dict[str, Way] = {"taylor": build_taylor, "cosine": build_cosines}
