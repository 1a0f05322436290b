"""Router of an artifact (models/FORMAT.md, "router") as stored on a device."""

from typing import Any

import numpy as np
import numpy.typing as npt

from approxsvm.artifact.views import Artifact
from approxsvm.ir.schema import ROUTER_WIDTH


class DeviceRouter:
    """Lists of centers without redundancy: each point is stored once, and slots refer to points.

    A slot is dropped if an earlier slot in the same panel has the same point, because the later one can never win. All
    other slots keep their order and panel, so the search finds the same center as it would with all slots. If the
    distances of two centers differ only by rounding, the host and the device may choose different centers.
    """

    def __init__(self, artifact: Artifact) -> None:
        lists = artifact.router()
        self.n_group_panels = len(lists.points) - int(lists.starts[-1])
        groups = np.arange(self.n_group_panels * ROUTER_WIDTH)
        of_groups = np.where(groups < len(lists.starts) - 1, groups, 0)
        targets = np.concatenate([of_groups, lists.members]).reshape(-1, ROUTER_WIDTH)
        self.group_panels = lists.starts + self.n_group_panels
        self._fill(lists.points, targets)

    def _fill(self, points: npt.NDArray[np.float32], targets: npt.NDArray[Any]) -> None:
        known: dict[bytes, int] = {}
        slot_points, slot_targets, panel_slots = [], [], [0]
        for panel, target in zip(points, targets, strict=True):
            seen: set[bytes] = set()
            for point, number in zip(panel, target, strict=True):
                key = point.tobytes()
                if key in seen:  # if distances are equal, the earlier lane wins
                    continue
                seen.add(key)
                slot_points.append(known.setdefault(key, len(known)))
                slot_targets.append(int(number))
            panel_slots.append(len(slot_points))
        width = points.shape[2]
        self.points = np.frombuffer(b"".join(known), np.float32).reshape(-1, width)
        self.slot_points, self.slot_targets = np.array(slot_points), np.array(slot_targets)
        self.panel_slots = np.array(panel_slots)

    @property
    def largest_search(self) -> int:
        """Maximum number of points with which a row is compared."""
        lists = self.panel_slots[self.group_panels]
        return int(self.panel_slots[self.n_group_panels] + np.diff(lists).max())

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays read by the header's functions."""
        numbers = ("panel_slots", "slot_points", "slot_targets", "group_panels")
        return {"points": self.points, **{name: smallest(getattr(self, name)) for name in numbers}}


def smallest(numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return nonnegative integers in the smallest type that can represent all of them."""
    return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))
