"""Triples of names in CSV and TSV files: reading with line numbers in every complaint, writing that loses nothing."""

import csv
import errno
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from io import StringIO
from pathlib import Path

from geotheory.errors import FactsError, InvalidArgument, nearest
from geotheory.names import names_problem

__all__ = ["read_triples", "write_triples"]

Triple = tuple[str, str, str]

ROLES = ("subject", "relation", "attribute")
DELIMITERS = (",", "\t", ";", "|")


def read_triples(path: Path, columns: Triple, delimiter: str | None) -> Iterator[tuple[int, Triple]]:
    """Each fact of the file with the number of the line on which it starts (a quoted cell may run over several lines).

    Parameters
    ----------
    path
        A text file in UTF-8, with or without byte order mark; lines end in LF, CRLF or CR. Rows without any text are ignored.
        The first other row names the columns; there may be more columns than the three that are read.
    columns
        The header names of the subjects, relations and attributes.
    delimiter
        One character; None: a tab if the file's suffix is .tsv or .tab, otherwise the one of ``, tab ; |`` at which the
        header falls into columns with the given names.

    Raises
    ------
    FactsError
        The file is not such a file; with the line number.
    InvalidArgument
        The three columns are not three, or the delimiter cannot separate cells.
    FileNotFoundError
        There is no such file.
    """
    if len(set(columns)) < 3:
        raise InvalidArgument(
            f"subject, relation and attribute must be three different columns, not {', '.join(map(repr, columns))}"
        )
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n\0 '):
        raise InvalidArgument(f"the delimiter must be one character such as ',' or a tab, not {delimiter!r}")
    text = _text(path)
    if delimiter is None:
        delimiter = _delimiter(path, text, columns)
    rows = _rows(path, text, delimiter)
    line, header = next(rows, (1, []))
    if not header:
        raise FactsError(f"{path} is empty; its first line must name the columns {', '.join(columns)}")
    chosen = _chosen_columns(f"{path}, line {line}", header, columns)
    for line, row in rows:
        if len(row) != len(header):
            raise FactsError(f"{path}, line {line}: {_cells(len(row))} where the header has {len(header)}")
        for name, i in zip(columns, chosen):
            problem = names_problem(row[i])
            if problem:
                raise FactsError(f"{path}, line {line}: the {name!r} cell {problem}")
        yield line, (row[chosen[0]], row[chosen[1]], row[chosen[2]])


def _text(path: Path) -> str:
    if path.is_dir():
        raise FactsError(f"{path} is a directory, not a file of facts")
    data = path.read_bytes()
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise FactsError(f"{path} is UTF-16, not UTF-8; save it as UTF-8")
    if b"\0" in data:
        raise FactsError(f"{path}, line {_line_of(data, data.index(0))}: a NUL byte; this is not a text file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, byte = _line_of(error.object, error.start), error.object[error.start]
        raise FactsError(f"{path}, line {line}: byte 0x{byte:02x} is not UTF-8; save the file as UTF-8") from None


def _line_of(data: bytes, position: int) -> int:
    before = data[:position]
    return 1 + before.count(b"\n") + before.count(b"\r") - before.count(b"\r\n")


def _rows(path: Path, text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    # newline="" leaves line ends inside quotes alone; strict turns a stray or unclosed quote into an error, where the
    # reader would otherwise silently swallow the rest of the file into one cell.
    reader = csv.reader(StringIO(text, newline=""), delimiter=delimiter, strict=True)
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            # Either quotes that do not match, or a cell beyond the csv module's limit, mostly for the same reason.
            raise FactsError(f"{path}, line {line}: check the quotes from here on ({error})") from None
        if any(cell.strip() for cell in row):
            yield line, row


def _delimiter(path: Path, text: str, columns: Triple) -> str:
    if path.suffix.lower() in (".tsv", ".tab"):
        return "\t"
    headers = {}
    for delimiter in DELIMITERS:
        with suppress(FactsError):
            headers[delimiter] = next(_rows(path, text, delimiter), (1, []))[1]
    # Ties go to the comma: `max` keeps the first.
    return max(headers, key=lambda d: (len({*columns} & {*headers[d]}), len(headers[d])), default=",")


def _chosen_columns(place: str, header: Sequence[str], columns: Triple) -> list[int]:
    for name in header:
        if name.strip() and header.count(name) > 1:
            raise FactsError(f"{place}: two columns are named {name!r}")
    known = ", ".join(map(repr, header))
    for role, name in zip(ROLES, columns):
        if name not in header:
            close = nearest(name, header)
            hint = close if "did you mean" in close else ""
            raise FactsError(
                f"{place}: no column {name!r} among {known}{hint}; choose columns with subject=, relation= and attribute=, "
                f"here {role}=..."
            )
    return [header.index(name) for name in columns]


def _cells(count: int) -> str:
    return f"{count} cell{'s' * (count != 1)}"


def write_triples(path: Path, rows: Iterable[Triple]) -> None:
    """Write the facts under the header subject, relation, attribute; tabs if the suffix is .tsv or .tab, else commas.

    The file appears, or is replaced, at the very end and at once: neither a full disk nor Ctrl-C leaves half a file or
    harms the old one.

    Raises
    ------
    InvalidArgument
        `path` is a directory or a device.
    FileNotFoundError
        The directory does not exist.
    """
    target = Path(os.path.realpath(path))  # through a symbolic link, not over it
    if target.exists() and not target.is_file():
        raise InvalidArgument(
            f"{path} is {'a directory' if target.is_dir() else 'no regular file'}; name a file to write to"
        )
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "no such directory", str(target.parent))
    # In the same directory, because a file can be replaced at once only within a file system.
    temporary = target.with_name(f".{secrets.token_hex(8)}.tmp")
    delimiter = "\t" if target.suffix.lower() in (".tsv", ".tab") else ","
    try:
        with temporary.open("x", encoding="utf-8", newline="") as file:
            # The line end \r\n (RFC 4180) makes the writer quote both characters where a name contains one of them.
            writer = csv.writer(file, delimiter=delimiter, lineterminator="\r\n")
            writer.writerow(ROLES)
            writer.writerows(rows)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, temporary)
        temporary.replace(target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
