"""The command `geotheory probe`."""

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from geotheory.cli_common import AsJson, Device, print_json, progress_bar

__all__ = ["probe"]


def probe(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A name on the hub, a directory, or minilm.")],
    relations: Annotated[
        str, typer.Option("--relations", help="A JSON, CSV or TSV file, or countries, elements or states.")
    ] = "countries",
    layer: Annotated[list[int] | None, typer.Option("--layer", help="Read this layer only; may be repeated.")] = None,
    untrained: Annotated[bool, typer.Option(help="Also probe a model of the same shape with random weights.")] = True,
    affine: Annotated[
        bool, typer.Option("--affine", help="Also the affine decoder of Hernandez et al. (slow).")
    ] = False,
    dtype: Annotated[str, typer.Option("--dtype", help="float32, bfloat16 or float16.")] = "float32",
    device: Device = "cpu",
    batch: Annotated[int, typer.Option("--batch", help="Prompts of one forward pass.")] = 64,
    cache: Annotated[Path | None, typer.Option("--cache", help="Folder for hidden states, read the next time.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of folds, shuffles, bootstrap and random weights.")] = 0,
    plot: Annotated[Path | None, typer.Option("--plot", help="Write a figure (PNG, SVG, PDF).")] = None,
    as_json: AsJson = False,
) -> None:
    """Does a pretrained model encode relations linearly? Read attributes from the state at the subject's last token.

    [bold]Examples[/bold]

      geotheory probe minilm --relations countries --cache states --plot countries.png
    """
    from paper_checks.language_models.probe import probe as probed
    from paper_checks.language_models.relations import read_relations
    from paper_checks.language_models.states import LanguageModel

    read = read_relations(relations)
    loaded = LanguageModel.load(model, dtype=dtype, device=device)
    other = LanguageModel.load(model, dtype=dtype, device=device, random=seed) if untrained else None
    total = sum(len(r.facts) * len(r.templates) for r in read) * (2 if untrained else 1)
    with ExitStack() as stack:
        show = progress_bar(stack, "prompts", total)
        done = 0

        def progress(relation: str, prompts: int) -> None:
            nonlocal done
            done += prompts
            show(done, relation)

        found = probed(
            loaded,
            read,
            layers=layer,
            untrained=other,
            affine=affine,
            cache=str(cache) if cache is not None else None,
            batch=batch,
            seed=seed,
            progress=progress,
        )
    if as_json:
        print_json(found.to_dict())
    else:
        typer.echo(str(found))
    if plot is not None:
        from paper_checks.language_models.figures import plot_probe

        plot_probe(found, plot)
        typer.echo(f"figure: {plot}", err=as_json)
