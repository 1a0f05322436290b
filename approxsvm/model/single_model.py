"""Every kind of model that is no ensemble."""

from __future__ import annotations

from approxsvm.model.cosine_model import CosineModel
from approxsvm.model.kernel_model import KernelModel
from approxsvm.model.taylor_model import TaylorModel

# Sums of terms that are no kernels at support vectors: artifacts hold the terms as they are (artifact/terms.py).
TermsModel = CosineModel
SingleModel = KernelModel | TaylorModel | TermsModel
