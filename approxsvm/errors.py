"""One exception class per kind of failure, one warning per kind of doubt.

Messages are lower case and name the offender and both numbers.
"""


class ApproxSVMError(Exception):
    """Base class of every error that approxsvm raises on purpose."""


class ModelFormatError(ApproxSVMError, ValueError):
    """A model file is not what its format demands, or the parts of a model contradict each other."""


class DataFormatError(ApproxSVMError, ValueError):
    """A data file is not LIBSVM text; the message names the line."""


class UnsupportedModelError(ApproxSVMError, ValueError):
    """The model is sound, but of a kind that cannot be compiled; the message names what was found."""


class ArtifactError(ApproxSVMError, ValueError):
    """The bytes of an artifact break a rule of models/FORMAT.md."""


class InputError(ApproxSVMError, ValueError):
    """Rows have the wrong shape or type, or hold NaN or infinity; or an option has a value that it cannot have."""


class UnsortedIndicesError(InputError):
    """The column indices of a sparse row do not ascend strictly."""


class TargetError(ApproxSVMError, RuntimeError):
    """The instruction-set target asked for is unknown, or this machine cannot run it."""


class MissingPackageError(ApproxSVMError, ImportError):
    """An optional package is not installed; the message says how to install it."""


class ApproxSVMWarning(UserWarning):
    """Base class of every warning that approxsvm issues."""


class ColumnsByPositionWarning(ApproxSVMWarning):
    """Columns of a table are taken for features by their position, as no names say which is which."""


class OpenAnswersWarning(ApproxSVMWarning):
    """An exported model answers some rows by its expansions alone: their labels or values may not be the source's."""


class SourceAccuracyWarning(ApproxSVMWarning):
    """The source's own arithmetic does not settle its answers: float64 rounds as much as decides them."""
