"""Windows of a raster; if memory permits, each consists of whole file blocks, so each block is decoded once."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_WINDOW_BYTES = 16 << 20  # memory per window; up to three windows are in memory
_TILE = 16  # tile sizes in TIFF files are multiples of this number
_TILES = (512, 256, 128, 64, 32, _TILE)
_SMALL = 256  # rasters up to this width or height are written as strips


@dataclass(frozen=True)
class Window:
    """Rectangle of pixels."""

    row: int
    column: int
    height: int
    width: int


@dataclass(frozen=True)
class Tiling:
    """Size of the windows in a raster of the given `size`, and of the tiles in which predictions are written.

    If possible, windows consist of whole output tiles, so that each tile is compressed once.
    """

    size: tuple[int, int]  # height and width
    height: int
    width: int
    group: int  # pixel rows processed together, one column of windows after another
    tile: tuple[int, int] | None  # height and width of tiles; None means strips as high as a window

    @classmethod
    def of(cls, size: tuple[int, int], blocks: Sequence[tuple[int, int]], bytes_per_pixel: int) -> "Tiling":
        """Choose windows for a raster; `blocks` lists the files' block sizes, (height, width)."""
        height, width = size
        block_height = min(max(rows for rows, _ in blocks), height)
        block_width = min(max(columns for _, columns in blocks), width)
        most = max(_WINDOW_BYTES // bytes_per_pixel, 1)  # pixels
        if block_height * width <= most:
            fit, steps = most // width, (block_height, *(math.lcm(block_height, tile) for tile in _TILES))
            rows, columns = _down(fit, max(step for step in steps if step <= fit)), width
        elif block_height * block_width <= most:
            rows, columns = block_height, _down(most // block_height, block_width)
        else:  # the file's blocks exceed the memory for a window
            columns = min(block_width, most)
            fit = most // columns
            rows = next((t for t in _TILES if t <= fit and block_height % t == 0), _down(fit, _TILE))
        rows, columns = min(rows, height), min(columns, width)
        group = max(block_height, rows) if rows < height else rows
        tile_height = next((t for t in _TILES if (rows % t == 0 and group % t == 0) or rows == height), None)
        tile_width = next((t for t in _TILES if columns % t == 0 or columns == width), _TILE)
        is_small = min(size) <= _SMALL
        if columns == width and (is_small or tile_height is None):
            return cls(size, rows, columns, group, None)
        return cls(size, rows, columns, group, (tile_height or _TILE, tile_width))

    def windows(self) -> Iterator[Window]:
        """Yield all windows, from top to bottom."""
        height, width = self.size
        for top in range(0, height, self.group):
            end = min(top + self.group, height)
            for column in range(0, width, self.width):
                for row in range(top, end, self.height):
                    yield Window(row, column, min(self.height, end - row), min(self.width, width - column))


def _down(number: int, step: int) -> int:
    """Round `number` down to a multiple of `step`, unless it is less than `step`."""
    return number - number % step if number >= step else number
