"""Methods that some instances of a class lack, as with scikit-learn's `available_if`; the errors give a reason."""

from collections.abc import Callable
from functools import wraps
from types import MethodType
from typing import Any


def available_if(check: Callable[[Any], bool]) -> Callable[[Callable[..., Any]], Any]:
    """Hide a method from objects for which `check` raises AttributeError; the error includes the message of `check`."""
    return lambda method: _Available(method, check)


class _Available:
    """Descriptor returned by `available_if`."""

    def __init__(self, method: Callable[..., Any], check: Callable[[Any], bool]) -> None:
        self.method, self.check = method, check

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is not None:
            self._check(instance)
            return MethodType(self.method, instance)

        @wraps(self.method)
        def checked(instance: Any, *args: Any, **options: Any) -> Any:
            self._check(instance)
            return self.method(instance, *args, **options)

        return checked

    def _check(self, instance: Any) -> None:
        try:
            self.check(instance)
        except AttributeError as why:
            raise AttributeError(f"this {type(instance).__name__} has no {self.method.__name__}: {why}") from None
