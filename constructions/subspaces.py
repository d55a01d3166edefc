"""The hidden state's coordinates by name."""

from collections.abc import Iterator, Mapping

__all__ = ["Subspaces"]


class Subspaces(Mapping[str, slice]):
    """Named runs of coordinates, one after the other: name -> slice.

    Parameters
    ----------
    parts
        Name -> dimension, in the order in which they lie in the hidden state (`Size.parts`).

    Examples
    --------
    >>> space = Subspaces({"subject blocks": 6, "relation codes": 4})
    >>> space["relation codes"]
    slice(6, 10, None)
    >>> space.split("relation codes", 2)
    [slice(6, 8, None), slice(8, 10, None)]
    """

    def __init__(self, parts: Mapping[str, int]) -> None:
        self._slices: dict[str, slice] = {}
        end = 0
        for name, dimension in parts.items():
            self._slices[name] = slice(end, end + dimension)
            end += dimension

    def __getitem__(self, name: str) -> slice:
        return self._slices[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._slices)

    def __len__(self) -> int:
        return len(self._slices)

    def split(self, name: str, pieces: int) -> list[slice]:
        """The subspace cut into so many runs of equal dimension."""
        whole = self[name]
        size = (whole.stop - whole.start) // pieces
        return [slice(whole.start + i * size, whole.start + (i + 1) * size) for i in range(pieces)]
