"""Compile trained SVMs into predictors that give the same labels hundreds of times faster than scikit-learn.

Public names are imported on first use, so that ``import approxsvm`` takes almost no time.
"""

from importlib import import_module as _import_module
from importlib.util import find_spec as _find_spec
from typing import TYPE_CHECKING

if _find_spec("approxsvm._native") is None:  # Python was started in the source folder and found the sources first
    from approxsvm.source_tree import installed_folder

    __path__[:] = [installed_folder(__path__[0])]

from approxsvm.errors import ApproxSVMError as ApproxSVMError
from approxsvm.errors import ApproxSVMWarning as ApproxSVMWarning
from approxsvm.errors import ArtifactError as ArtifactError
from approxsvm.errors import DataFormatError as DataFormatError
from approxsvm.errors import InputError as InputError
from approxsvm.errors import MissingPackageError as MissingPackageError
from approxsvm.errors import ModelFormatError as ModelFormatError
from approxsvm.errors import OpenAnswersWarning as OpenAnswersWarning
from approxsvm.errors import SourceAccuracyWarning as SourceAccuracyWarning
from approxsvm.errors import TargetError as TargetError
from approxsvm.errors import UnsupportedModelError as UnsupportedModelError

if TYPE_CHECKING:
    __version__: str
    from approxsvm.analysis.verification import Verification as Verification
    from approxsvm.analysis.verification import verify as verify
    from approxsvm.artifact.views import Artifact as Artifact
    from approxsvm.compiler import compile as compile
    from approxsvm.compiling import CompiledClassifier as CompiledClassifier
    from approxsvm.compiling import CompiledOutlierDetector as CompiledOutlierDetector
    from approxsvm.compiling import CompiledRegressor as CompiledRegressor
    from approxsvm.estimators import CompiledDensity as CompiledDensity
    from approxsvm.estimators import CompiledEnsemble as CompiledEnsemble
    from approxsvm.estimators import CompiledMultiOutput as CompiledMultiOutput
    from approxsvm.estimators import CompiledOneClassSVM as CompiledOneClassSVM
    from approxsvm.estimators import CompiledSVC as CompiledSVC
    from approxsvm.estimators import CompiledSVR as CompiledSVR
    from approxsvm.estimators import load as load
    from approxsvm.expansion.validity import gamma_max as gamma_max
    from approxsvm.frontends import read_any as read_any
    from approxsvm.frontends import read_model as read_model
    from approxsvm.frontends.data import read_dense as read_dense
    from approxsvm.frontends.data import read_rows as read_rows
    from approxsvm.frontends.libsvm import read_libsvm_data as read_libsvm_data
    from approxsvm.frontends.libsvm import read_libsvm_model as read_libsvm_model
    from approxsvm.frontends.svm_scale import with_range_file as with_range_file
    from approxsvm.integrations.rasters.dataset import score_raster as score_raster
    from approxsvm.integrations.rasters.image import predict_image as predict_image
    from approxsvm.integrations.scoring.dataset import score_dataset as score_dataset
    from approxsvm.integrations.scoring.result import Scoring as Scoring
    from approxsvm.ir.kernel_model import KernelModel as KernelModel
    from approxsvm.ir.plan import Plan as Plan
    from approxsvm.predictor import Predictor as Predictor
    from approxsvm.system.installed_headers import get_cmake_dir as get_cmake_dir
    from approxsvm.system.installed_headers import get_include as get_include
    from approxsvm.system.installed_headers import get_pkgconfig_dir as get_pkgconfig_dir

_MODULES = {
    name: module
    for module, names in {
        "approxsvm.artifact.views": "Artifact",
        "approxsvm.compiler": "compile",
        "approxsvm.compiling": "CompiledClassifier CompiledOutlierDetector CompiledRegressor",
        "approxsvm.system.installed_headers": "get_cmake_dir get_include get_pkgconfig_dir",
        "approxsvm.estimators": "CompiledDensity CompiledEnsemble CompiledMultiOutput CompiledOneClassSVM "
        "CompiledSVC CompiledSVR load",
        "approxsvm.expansion.validity": "gamma_max",
        "approxsvm.ir.kernel_model": "KernelModel",
        "approxsvm.ir.plan": "Plan",
        "approxsvm.predictor": "Predictor",
        "approxsvm.frontends": "read_any read_model",
        "approxsvm.frontends.data": "read_dense read_rows",
        "approxsvm.frontends.libsvm": "read_libsvm_data read_libsvm_model",
        "approxsvm.frontends.svm_scale": "with_range_file",
        "approxsvm.analysis.verification": "Verification verify",
        "approxsvm.integrations.rasters.dataset": "score_raster",
        "approxsvm.integrations.rasters.image": "predict_image",
        "approxsvm.integrations.scoring.dataset": "score_dataset",
        "approxsvm.integrations.scoring.result": "Scoring",
    }.items()
    for name in names.split()
}

__all__ = sorted({name for name in globals() if name.endswith(("Error", "Warning"))} | {*_MODULES})


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version  # imported here because it is slow

        globals()[name] = version("approxsvm")
        return globals()[name]
    if name not in _MODULES:
        raise AttributeError(f"module 'approxsvm' has no attribute {name!r}")
    value = getattr(_import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
