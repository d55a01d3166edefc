"""What the commands share: options, output, and a progress bar."""

import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from geotheory.errors import InvalidArgument

__all__ = ["AsJson", "Device", "ensure_folder", "print_json", "progress_bar"]

Device = Annotated[str, typer.Option("--device", help="cpu, cuda, cuda:1, ...")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


def print_json(value: object) -> None:
    """As the only output of a command with `--json`."""
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))


def ensure_folder(out: Path) -> None:
    """Refuse a file where a folder is to be written, before any work is done."""
    if out.exists() and not out.is_dir():
        raise InvalidArgument(f"--out {out} is a file; give a directory")


def progress_bar(stack: ExitStack, what: str, total: int) -> Callable[[int, str], object]:
    """A progress bar on a terminal; the function that moves it to a place and says something beside it."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[text]}"),
    )
    bar = stack.enter_context(Progress(*columns, console=console, transient=True, disable=not console.is_terminal))
    task = bar.add_task("", total=total, text="")
    return lambda place, text: bar.update(task, completed=place, text=text)
