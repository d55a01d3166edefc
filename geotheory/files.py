"""Files that are whole or not there at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["replacing", "write_whole"]


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a file beside `path` to write into; when all went well it takes the place of `path`.

    After an error, a full disk or Ctrl-C the old file is as it was, and the new one is gone. Its folder is made if need be.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write_whole(path: Path, text: str) -> Path:
    """Write a text file, UTF-8, by :func:`replacing`; returns its path."""
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")
    return path
