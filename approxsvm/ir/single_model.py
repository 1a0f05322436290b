"""Every kind of model that is no ensemble."""

from __future__ import annotations

from approxsvm.ir.cosine_model import CosineModel
from approxsvm.ir.kernel_model import KernelModel
from approxsvm.ir.taylor_model import TaylorModel

# Sums of terms that are no kernels at support vectors: artifacts hold the terms as they are (artifact/terms.py).
TermsModel = CosineModel
SingleModel = KernelModel | TaylorModel | TermsModel
