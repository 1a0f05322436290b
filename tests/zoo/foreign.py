"""Models of other programs: files as these write them, and the programs themselves, or their numbers, as judges."""

from __future__ import annotations

from zoo.specimens import Entry

ENTRIES: tuple[Entry, ...] = ()
