"""Places that no test can notice, or none has to, each with its reason."""

from __future__ import annotations

import re
from typing import Final

from .places import Place

# A pattern of files, one of texts, and why nothing is lost.
EXPLAINED: Final[tuple[tuple[str, str, str], ...]] = ()


def reason(place: Place) -> str:
    """Return why a place may go unnoticed, "" if it may not."""
    return next(
        (why for file, text, why in EXPLAINED if re.search(file, place.file) and re.fullmatch(text, place.text)), ""
    )
