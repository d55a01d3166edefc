"""The commands `geotheory export` and `geotheory score-circuit`."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from geotheory.cli_common import AsJson, ensure_folder, print_json

__all__ = ["export", "score_circuit"]


class Architecture(StrEnum):
    """What a construction can be exported to."""

    opt = "opt"


def export(
    model: Annotated[Path, typer.Argument(metavar="DIR", help="Directory made by `geotheory build`.")],
    out: Annotated[Path, typer.Option("--out", help="Directory for the checkpoint.")],
    to: Annotated[Architecture, typer.Option("--to", help="Architecture.")] = Architecture.opt,
) -> None:
    """Write a built model as a Hugging Face checkpoint, with circuit.json: what every head and neuron is for.

    [bold]Examples[/bold]

      geotheory build chain-of-thought --facts examples/family.csv -k 2 --out family

      geotheory export family --to opt --out family-opt
    """
    import constructions
    from constructions.export import to_opt

    ensure_folder(out)
    loaded = constructions.load(model)
    made = {Architecture.opt: to_opt}[to](loaded)
    made.save(out)
    config = made.model.config
    typer.echo(
        f"{loaded.kind}, {loaded.hops} hops, as {type(made.model).__name__}: hidden size {config.hidden_size}, "
        f"{config.num_attention_heads} heads, {config.ffn_dim} neurons, {config.num_hidden_layers} layers, {config.vocab_size} "
        f"tokens; smallest lead {made.margin:.3g}; written to {out}"
    )


def score_circuit(
    truth: Annotated[Path, typer.Argument(metavar="DIR", help="Exported directory, or its circuit.json.")],
    claims: Annotated[Path, typer.Argument(metavar="CLAIMS", help="JSON file of claimed heads and neurons.")],
    as_json: AsJson = False,
) -> None:
    """Compare claims about heads and neurons with what they are known to do: precision and recall.

    CLAIMS holds {"heads": [{"layer": 0, "head": 1, "role": "subject"}], "neurons": [{"layer": 0, "neuron": 5, "role": "..."}]}.

    [bold]Examples[/bold]

      geotheory score-circuit family-opt claims.json
    """
    from constructions.export import score

    found = score(truth, claims)
    if as_json:
        print_json(found.to_dict())
    else:
        typer.echo(str(found))
