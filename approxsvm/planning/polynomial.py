"""Lowering of models with linear, polynomial or sigmoid kernels to a polynomial form, support vectors, or both."""

from __future__ import annotations

from approxsvm.artifact import polynomials
from approxsvm.errors import UnsupportedModelError
from approxsvm.expansion import polynomial_form
from approxsvm.ir.kernel_model import KernelModel
from approxsvm.planning.request import Built, Lowering, Request


def build(model: KernelModel, request: Request) -> Built:
    """Lower to support vectors and, if cheaper, also to a polynomial form; in "approximate" mode, only to the form."""
    request.check_positive_tolerance()
    kernel = "linear" if model.degree == 1 else f"polynomial of degree {model.degree}"
    summed_up = f"the kernel is {kernel} and summed up without error, so there is nothing to approximate"
    if request.mode == "approximate":
        form = polynomial_form.sum_up(model)
        if not form.is_finite:
            raise UnsupportedModelError(f"the form of this {model.source} exceeds the range of float64")
        request.check_plan(model, "form")
        plan = request.plan_of(model, "form", summed_up)
        return polynomials.build_polynomial(model, "approximate", form, plan=plan), ()
    request.check_plan(model, "form", "exact")
    is_cheaper = polynomial_form.is_cheaper(model) if request.plan is None else request.plan.engine == "form"
    form_to_add = polynomial_form.sum_up(model) if is_cheaper else None
    if form_to_add is not None and form_to_add.is_finite:
        artifact = polynomials.build_polynomial(
            model,
            "certified",
            form_to_add,
            tolerance=request.tolerance,
            plan=request.plan_of(model, "form", summed_up),
        )
        if request.plan is not None or request.limits.max_bytes is None or artifact.n_bytes <= request.limits.max_bytes:
            return artifact, ()
    reason = f"the exact engine alone: the kernel is {kernel}, and a form of all its terms would cost more"
    plan = request.plan_of(model, "exact", reason)
    return polynomials.build_polynomial(model, "exact", tolerance=request.tolerance, plan=plan), ()


def build_sigmoid(model: KernelModel, request: Request) -> Built:
    """Lower a model with a sigmoid kernel to the exact engine."""
    if request.mode == "approximate":
        raise UnsupportedModelError("a sigmoid kernel has no expansion: compile it with mode='certified' or 'exact'")
    request.check_positive_tolerance()
    request.check_plan(model, "exact")
    plan = request.plan_of(model, "exact", "the exact engine alone: the kernel is sigmoid, which has no expansion")
    return polynomials.build_polynomial(model, "exact", tolerance=request.tolerance, plan=plan), ()


LOWERINGS: dict[str, Lowering] = {"polynomial": build, "sigmoid": build_sigmoid}
