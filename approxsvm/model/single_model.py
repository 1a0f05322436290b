"""Every kind of model that is no ensemble."""

from __future__ import annotations

from approxsvm.model.cosine_model import CosineModel
from approxsvm.model.kernel_model import KernelModel
from approxsvm.model.taylor_model import TaylorModel

SingleModel = KernelModel | TaylorModel | CosineModel
