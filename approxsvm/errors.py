"""Exception classes, one per kind of failure, and warning classes.

Error messages are in lower case and name the offending item, the value found and the value expected.
"""


class ApproxSVMError(Exception):
    """Base class of every error that approxsvm raises intentionally."""


class ModelFormatError(ApproxSVMError, ValueError):
    """A model file violates its format, or the parts of a model contradict each other."""


class DataFormatError(ApproxSVMError, ValueError):
    """A data file is not in LIBSVM's text format; the message names the line."""


class UnsupportedModelError(ApproxSVMError, ValueError):
    """The model is valid, but cannot be compiled; the message says why."""


class ArtifactError(ApproxSVMError, ValueError):
    """The bytes of an artifact violate models/FORMAT.md."""


class InputError(ApproxSVMError, ValueError):
    """Rows have the wrong shape or type, or contain NaN or infinity; or an option has an invalid value."""


class UnsortedIndicesError(InputError):
    """The column indices of a sparse row are not strictly increasing."""


class TargetError(ApproxSVMError, RuntimeError):
    """The requested instruction set is unknown, or this machine does not support it."""


class MissingPackageError(ApproxSVMError, ImportError):
    """An optional package is not installed; the message says how to install it."""


class ApproxSVMWarning(UserWarning):
    """Base class of every warning that approxsvm issues."""


class ColumnsByPositionWarning(ApproxSVMWarning):
    """Columns of a table are matched to features by position because the model has no column names."""


class OpenAnswersWarning(ApproxSVMWarning):
    """An exported model predicts some rows from its expansions alone: labels or values may differ from the source's."""


class SourceAccuracyWarning(ApproxSVMWarning):
    """Float64 rounding in the source may change its predictions."""
