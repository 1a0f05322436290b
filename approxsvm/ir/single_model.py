"""Union of all model types except ensembles."""

from approxsvm.ir.cosine_model import CosineModel
from approxsvm.ir.kernel_model import KernelModel
from approxsvm.ir.taylor_model import TaylorModel

# Models that are sums of terms other than kernels at support vectors, stored unchanged (artifact/terms.py).
TermsModel = CosineModel
SingleModel = KernelModel | TaylorModel | TermsModel
