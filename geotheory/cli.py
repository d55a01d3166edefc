"""The command `geotheory`: thin; every command imports what it needs when it runs, so that `size` loads no torch."""

import sys
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from geotheory.cli_common import AsJson, Device, ensure_folder, print_json
from geotheory.cli_export import export, score_circuit
from geotheory.cli_learning import learn, threshold
from geotheory.cli_probe import probe
from geotheory.errors import GeotheoryError, InvalidArgument
from geotheory.files import write_whole

if TYPE_CHECKING:
    from constructions.construction import Construction
    from geotheory.facts import FactTable

__all__ = ["app", "main"]

app = typer.Typer(
    name="geotheory",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Transformers that recall facts: build them in closed form, verify and prove them, and say how small they can be.",
)


class Dtype(StrEnum):
    """Floating-point types in which a model can be built."""

    float64 = "float64"
    float32 = "float32"
    bfloat16 = "bfloat16"
    float16 = "float16"


class Attend(StrEnum):
    """Softmax attention, or saturated attention whose arithmetic is exact."""

    softmax = "softmax"
    hard = "hard"


Kind = Annotated[
    str,
    typer.Argument(
        metavar="CONSTRUCTION", help="single-hop, direct, chain-of-thought, key-value, meet-in-middle or associative."
    ),
]
Entities = Annotated[int | None, typer.Option("-N", "--entities", help="Number of subjects (random bijections).")]
Relations = Annotated[int | None, typer.Option("-R", "--relations", help="Number of relations (random bijections).")]
Hops = Annotated[int, typer.Option("-k", "--hops", help="Hops of a query.")]
Facts = Annotated[
    Path | None, typer.Option("--facts", help="CSV or TSV file with columns subject, relation, attribute.")
]
Columns = Annotated[
    str, typer.Option("--columns", help="Names of the three columns in the file.", metavar="SUBJECT,RELATION,ATTRIBUTE")
]
Bits = Annotated[int | None, typer.Option("--bits", help="Bits a coordinate of the attributes' code (default 1).")]
Residual = Annotated[bool, typer.Option("--residual", help="With a residual stream.")]
HopsPerStep = Annotated[
    int | None, typer.Option("--hops-per-step", help="chain-of-thought: hops between emitted entities (default 1).")
]
Forward = Annotated[
    int | None, typer.Option("--forward", help="meet-in-middle: hops held by the subject (default half of them).")
]
HiddenLayers = Annotated[int | None, typer.Option("--hidden-layers", help="meet-in-middle: 1 or 2 (default 2).")]
Attention = Annotated[Attend | None, typer.Option("--attention", help="How heads attend (default softmax).")]
Dimension = Annotated[int | None, typer.Option("-d", "--dimension", help="associative: dimension of the embeddings.")]
Seed = Annotated[int, typer.Option("--seed", help="Of random facts, samples and random embeddings.")]
DtypeOption = Annotated[Dtype, typer.Option("--dtype", help="Type of the weights.")]


def main() -> None:
    """Run the command; exit status 0 if all holds, 1 if something fails, 2 for bad input, 130 on Ctrl-C."""
    try:
        app()
    except (GeotheoryError, OSError) as error:
        text = (
            str(error)
            if isinstance(error, GeotheoryError) or error.args[1:] == ()
            else f"{error.strerror}: {error.filename}"
        )
        typer.echo(f"error: {text}", err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        sys.exit(130)


def _console() -> Console:
    # A pipe has no width; tables must not be squeezed into 80 columns there.
    console = Console()
    return console if console.is_terminal else Console(width=160)


def _facts(path: Path | None, columns: str, entities: int | None, relations: int | None, seed: int) -> "FactTable":
    from geotheory.facts import FactTable

    if path is not None:
        if entities is not None or relations is not None:
            raise InvalidArgument("give either --facts FILE or -N and -R, not both")
        names = columns.split(",")
        if len(names) != 3:
            raise InvalidArgument(f"--columns takes three names, separated by commas; {columns!r} has {len(names)}")
        return FactTable.from_csv(path, subject=names[0], relation=names[1], attribute=names[2])
    if entities is None or relations is None:
        raise InvalidArgument("give -N and -R for random bijections, or --facts FILE")
    return FactTable.random_bijections(entities=entities, relations=relations, seed=seed)


def _given(
    bits: int | None,
    residual: bool,
    hops_per_step: int | None,
    forward: int | None,
    hidden_layers: int | None,
    attention: Attend | None,
    d: int | None = None,
) -> dict[str, Any]:
    """The options of constructions by name; None and False stand for "not given"."""
    return {
        "bits": bits,
        "residual": residual,
        "hops_per_step": hops_per_step,
        "forward": forward,
        "hidden_layers": hidden_layers,
        "attention": attention.value if attention else None,
        "d": d,
    }


def _options(kind: str, options: dict[str, Any]) -> dict[str, Any]:
    """The options that were given, refused by name where the construction does not have them."""
    accepted = {
        "single_hop": {"bits"},
        "direct": {"bits", "attention"},
        "chain_of_thought": {"bits", "hops_per_step", "attention"},
        "key_value": {"attention"},
        "meet_in_middle": {"forward", "hidden_layers", "attention"},
        "associative": {"d"},
    }[kind]
    given = {name: value for name, value in options.items() if value is not None and value is not False}
    for name in given.keys() - accepted - {"residual"}:
        has = ", ".join(f"--{option.replace('_', '-')}" for option in sorted(accepted))
        raise InvalidArgument(f"{kind} has no option --{name.replace('_', '-')}; it has {has}")
    return given


def _ensure_fits(
    kind: str,
    entities: int | None,
    relations: int | None,
    hops: int,
    dtype: Dtype,
    device: str,
    options: dict[str, Any],
) -> None:
    """Refuse what cannot fit before even the random facts are drawn; the builder checks again."""
    if entities is None or relations is None or kind == "associative":
        return
    import torch

    from constructions.construction import ensure_fits
    from constructions.sizes import size

    sized = {name: value for name, value in _options(kind, options).items() if name != "attention"}
    cost = size(kind, entities=entities, relations=relations, hops=hops, **sized)
    with suppress(RuntimeError, AssertionError):  # a device that is not there is named by the builder
        ensure_fits(kind, entities, relations, hops, cost, getattr(torch, dtype.value), device)


def _kind(name: str) -> str:
    from constructions.sizes import KINDS
    from geotheory.errors import UnknownName

    kind = name.replace("-", "_")
    known = (*KINDS, "associative")
    if kind not in known:
        raise UnknownName("construction", name, [k.replace("_", "-") for k in known])
    return kind


def _build(
    kind: str, facts: "FactTable", hops: int, dtype: Dtype, device: str, seed: int, options: dict[str, Any]
) -> "Construction":
    import torch

    import constructions
    from geotheory.devices import ensure_device

    ensure_device(device)
    chosen: dict[str, Any] = _options(kind, options) | {"dtype": getattr(torch, dtype.value), "device": device}
    builder = getattr(constructions, kind)
    if kind in ("single_hop", "associative"):
        if hops != 1:
            raise InvalidArgument(
                f"{kind} answers one hop, not {hops}; use direct, chain-of-thought, key-value or meet-in-middle"
            )
        if kind == "associative":
            if "d" not in chosen:
                raise InvalidArgument("associative needs the dimension of its embeddings: -d")
            chosen["seed"] = seed
        return builder(facts, **chosen)  # type: ignore[no-any-return]
    return builder(facts, hops, **chosen)  # type: ignore[no-any-return]


@app.command()
def size(
    entities: Annotated[int, typer.Option("-N", "--entities", help="Number of subjects.")],
    relations: Annotated[int, typer.Option("-R", "--relations", help="Number of relations.")],
    hops: Hops = 1,
    bits: Annotated[
        int, typer.Option("--bits", help="Bits a coordinate, where the construction has amplitude codes.")
    ] = 1,
    shared_bits: Annotated[
        int, typer.Option("--shared-bits", "-P", help="Bits that any model may have in its shared weights.")
    ] = 0,
    residual: Residual = False,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Write a figure of d against N, at this R and k (PNG, SVG, PDF).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """What each construction costs, and the least possible.

    Nothing is built, so any size will do.

    [bold]Examples[/bold]

      geotheory size -N 4096 -R 16

      geotheory size -N 1000000000 -R 16 -k 5
    """
    from bounds.minimum import minimum

    rows = minimum(entities, relations, hops, bits, shared_bits, residual=residual)
    if plot is not None:
        from bounds.drawing import plot_dimensions

        plot_dimensions(entities, relations, hops, plot)
    if as_json:
        shape = {"entities": entities, "relations": relations, "hops": hops, "bits": bits, "shared_bits": shared_bits}
        print_json(shape | {"rows": [row.to_dict() for row in rows]})
        return
    title = f"N = {entities:,}, R = {relations:,}, k = {hops}"
    table = Table(title=title, title_justify="left")
    for name in ("regime", "construction"):
        table.add_column(name, overflow="fold")
    for name in ("d", "width", "depth", "steps", "parameters", "cost", "least possible", "ratio"):
        table.add_column(name, justify="right")
    table.add_column("of what")
    for row in rows:
        counts = (row.d, row.width, row.depth, row.steps, row.parameters)
        cells = ("" if number is None else f"{number:,}" for number in counts)
        least = "" if row.least is None else f"{row.least:,.6g} ({row.theorem})"
        cost = "" if row.cost is None else f"{row.cost:,}"
        ratio = "" if row.ratio is None else f"{row.ratio:.4g}"
        table.add_row(row.regime, row.construction.replace("_", "-"), *cells, cost, least, ratio, row.unit)
    _console().print(table)


@app.command()
def count(
    kind: Annotated[
        str, typer.Argument(help="permutation, derangement, involution, matching, simple or simple-matching.")
    ],
    entities: Annotated[int, typer.Option("-N", "--entities", help="Number of entities.")],
    relations: Annotated[int, typer.Option("-R", "--relations", help="Number of relations (colours).")],
    connected: Annotated[bool, typer.Option("--connected", help="Connected graphs alone.")] = False,
    up_to_isomorphism: Annotated[
        bool, typer.Option("--up-to-isomorphism", help="Up to relabelling the entities; colours are kept.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Count R-regular edge-coloured graphs, exactly.

    [bold]Examples[/bold]

      geotheory count simple -N 6 -R 2 --up-to-isomorphism
    """
    import bounds

    options = {"connected": connected, "labelled": not up_to_isomorphism}
    number = bounds.count(kind, entities=entities, relations=relations, **options)
    if as_json:
        print_json({"kind": kind, "entities": entities, "relations": relations, **options, "count": str(number)})
    else:
        typer.echo(str(number))


class Theorem(StrEnum):
    """Bounds that the command line evaluates."""

    fixed_unembedding = "fixed-unembedding"
    free_unembedding = "free-unembedding"
    chain_of_thought = "chain-of-thought"
    frozen_embedding = "frozen-embedding"
    width = "width"
    real_dimension = "real-dimension"


@app.command()
def bound(
    theorem: Annotated[Theorem, typer.Argument(help="Which bound.")],
    entities: Annotated[int, typer.Option("-N", "--entities", help="Number of entities.")],
    relations: Annotated[int, typer.Option("-R", "--relations", help="Number of relations.")],
    hops: Hops = 1,
    shared_bits: Annotated[int, typer.Option("--shared-bits", "-P", help="Bits in the shared weights.")] = 0,
    hops_per_step: HopsPerStep = None,
    neurons: Annotated[int | None, typer.Option("--width", help="real-dimension: neurons of the hidden layer.")] = None,
    curve: Annotated[
        bool,
        typer.Option("--curve", help="fixed-unembedding: D against P (B3). free-unembedding: D_in against D_out (B2)."),
    ] = False,
    plot: Annotated[Path | None, typer.Option("--plot", help="With --curve: write a figure (PNG, SVG, PDF).")] = None,
    as_json: AsJson = False,
) -> None:
    """Evaluate one lower bound, rigorously, with its formula and the assumption in words.

    [bold]Examples[/bold]

      geotheory bound fixed-unembedding -N 4096 -R 16 -k 2

      geotheory bound free-unembedding -N 1000000 -R 4 -k 3 --curve --plot split.png
    """
    import bounds

    if plot is not None and not curve:
        raise InvalidArgument("--plot draws a curve: add --curve")
    shape = (entities, relations, hops)
    if curve:
        _curve(theorem, shape, shared_bits, plot, as_json)
        return
    found = {
        Theorem.fixed_unembedding: lambda: bounds.fixed_unembedding(*shape, shared_bits),
        Theorem.free_unembedding: lambda: bounds.free_unembedding(*shape, shared_bits),
        Theorem.chain_of_thought: lambda: bounds.chain_of_thought(*shape, hops_per_step or 1, shared_bits),
        Theorem.frozen_embedding: lambda: bounds.frozen_embedding(*shape),
        Theorem.width: lambda: bounds.width(*shape),
        Theorem.real_dimension: lambda: bounds.real_dimension(*shape, width=_required(neurons, "--width")),
    }[theorem]()
    if as_json:
        print_json(found.to_dict() | {"formula": str(found.formula)})
    else:
        typer.echo(f"{found}\n{found.formula}")


def _required(value: int | None, option: str) -> int:
    if value is None:
        raise InvalidArgument(f"this bound needs {option}")
    return value


def _curve(theorem: Theorem, shape: tuple[int, int, int], shared_bits: int, plot: Path | None, as_json: bool) -> None:
    import bounds

    title = "N = {:,}, R = {:,}, k = {}".format(*shape)
    curve: Any
    if theorem is Theorem.fixed_unembedding:
        curve, names, draw = bounds.threshold_curve(*shape), ("P shared bits", "D bits per subject"), "plot_threshold"
    elif theorem is Theorem.free_unembedding:
        curve, names, draw = bounds.split_curve(*shape, shared_bits), ("D_in", "D_out"), "plot_split"
    else:
        raise InvalidArgument(f"{theorem.value} has no curve; fixed-unembedding and free-unembedding have")
    if plot is not None:
        from bounds import drawing

        getattr(drawing, draw)(curve, plot, title=title)
    if as_json:
        print_json(vars(curve))
        return
    table = Table(*names, title=title, title_justify="left")
    for x, y in curve.points:
        table.add_row(f"{x:,.6g}", f"{y:,.6g}")
    _console().print(table)
    if plot is not None:
        typer.echo(f"figure: {plot}")


@app.command()
def verify(
    construction: Kind,
    entities: Entities = None,
    relations: Relations = None,
    hops: Hops = 1,
    facts: Facts = None,
    columns: Columns = "subject,relation,attribute",
    bits: Bits = None,
    residual: Residual = False,
    hops_per_step: HopsPerStep = None,
    forward: Forward = None,
    hidden_layers: HiddenLayers = None,
    attention: Attention = None,
    dimension: Dimension = None,
    sample: Annotated[int | None, typer.Option("--sample", help="Ask so many random queries instead of all.")] = None,
    seed: Seed = 0,
    dtype: DtypeOption = Dtype.float32,
    device: Device = "cpu",
    proof: Annotated[bool, typer.Option("--proof/--no-proof", help="Also prove it from the weights.")] = True,
    as_json: AsJson = False,
) -> None:
    """Build a construction, ask it every query, and prove it from its weights.

    [bold]Examples[/bold]

      geotheory verify single-hop -N 4096 -R 16

      geotheory verify direct -N 4096 -R 16 -k 2

      geotheory verify chain-of-thought --facts examples/family.csv -k 2
    """
    import geotheory

    kind = _kind(construction)
    options = _given(bits, residual, hops_per_step, forward, hidden_layers, attention, dimension)
    _ensure_fits(kind, entities, relations, hops, dtype, device, options)
    table = _facts(facts, columns, entities, relations, seed)
    built = _build(kind, table, hops, dtype, device, seed, options)
    found = geotheory.verify(built, sample=sample, seed=seed, progress=not as_json)
    certificate = built.certificate() if proof and kind != "associative" else None
    if as_json:
        print_json(
            {
                "kind": kind,
                "options": dict(built.options),
                "size": built.size.to_dict(),
                "verification": found.to_dict(),
                "certificate": certificate and certificate.to_dict(),
            }
        )
    else:
        typer.echo(repr(built))
        typer.echo(str(found))
        if certificate is not None:
            typer.echo(str(certificate))
    if not found.complete:
        raise typer.Exit(130)
    if not found.holds or (certificate is not None and not certificate.holds):
        raise typer.Exit(1)


@app.command()
def prove(
    construction: Kind,
    entities: Annotated[int, typer.Option("-N", "--entities", help="Number of entities.")],
    relations: Annotated[int, typer.Option("-R", "--relations", help="Number of relations.")],
    hops: Hops = 1,
    bits: Bits = None,
    residual: Residual = False,
    hops_per_step: HopsPerStep = None,
    forward: Forward = None,
    hidden_layers: HiddenLayers = None,
    attention: Attention = None,
    as_json: AsJson = False,
) -> None:
    """Prove a construction for every fact table of a shape, without building a weight.

    `verify` proves it for one table, from the weights themselves; this reaches sizes that no memory would hold.

    [bold]Examples[/bold]

      geotheory prove direct -N 1000000000 -R 16 -k 5
    """
    import constructions

    kind = _kind(construction)
    if kind == "associative":
        raise InvalidArgument("there is nothing to prove of associative: recall by near-orthogonality has no guarantee")
    options = _given(bits, residual, hops_per_step, forward, hidden_layers, attention)
    chosen = _options(kind, options)
    certificate = constructions.schema(kind, entities=entities, relations=relations, hops=hops, **chosen)
    if as_json:
        print_json(certificate.to_dict())
    else:
        typer.echo(str(certificate))
    if not certificate.holds:
        raise typer.Exit(1)


@app.command()
def build(
    construction: Kind,
    out: Annotated[Path, typer.Option("--out", help="Directory to write the model into.")],
    entities: Entities = None,
    relations: Relations = None,
    hops: Hops = 1,
    facts: Facts = None,
    columns: Columns = "subject,relation,attribute",
    bits: Bits = None,
    residual: Residual = False,
    hops_per_step: HopsPerStep = None,
    forward: Forward = None,
    hidden_layers: HiddenLayers = None,
    attention: Attention = None,
    seed: Seed = 0,
    dtype: DtypeOption = Dtype.float32,
) -> None:
    """Build a construction and write it to a directory, for `geotheory ask`.

    [bold]Examples[/bold]

      geotheory build single-hop --facts examples/elements.csv --out elements

      geotheory build chain-of-thought --facts examples/family.csv -k 3 --out family
    """
    kind = _kind(construction)
    if kind == "associative":
        raise InvalidArgument(
            "associative is a baseline without guarantee, and not kept; measure it with `geotheory verify`"
        )
    ensure_folder(out)
    options = _given(bits, residual, hops_per_step, forward, hidden_layers, attention)
    _ensure_fits(kind, entities, relations, hops, dtype, "cpu", options)
    table = _facts(facts, columns, entities, relations, seed)
    built = _build(kind, table, hops, dtype, "cpu", seed, options)
    typer.echo(f"{built!r} written to {built.save(out)}")


@app.command()
def ask(
    model: Annotated[Path, typer.Argument(metavar="DIR", help="Directory made by `geotheory build`.")],
    subject: Annotated[str, typer.Argument(metavar="SUBJECT", help="Whom the query starts from.")],
    relations: Annotated[
        list[str], typer.Argument(metavar="RELATION...", help="Relations, the one that is applied first first.")
    ],
    as_json: AsJson = False,
) -> None:
    """Ask a built model one query, by name; a chain of thought is shown step by step.

    Exit status 1 if the model abstains.

    [bold]Examples[/bold]

      geotheory ask elements Iron symbol

      geotheory ask family Ada wife mother
    """
    import constructions

    loaded = constructions.load(model)
    facts = loaded.facts
    x = facts.subject_index(subject)
    word = [facts.relation_index(name) for name in relations]
    loaded.decoding.check(len(word))
    chain = [facts.attributes[a] if a >= 0 else None for a in loaded.answer([x], [word], steps=True)[0].tolist()]
    if as_json:
        print_json({"subject": subject, "relations": relations, "answer": chain[-1], "chain": chain})
    else:
        if loaded.decoding.hops_per_step:
            start = 0
            for end, name in zip(loaded.decoding.emitted_hops(len(word)), chain):
                typer.echo(f"  {' '.join(relations[start : end + 1])} -> {name or '(no answer)'}", err=True)
                start = end + 1
                if name is None:
                    break
        typer.echo(chain[-1] if chain[-1] is not None else "no answer: the model abstains")
    if chain[-1] is None:
        raise typer.Exit(1)


app.command()(export)
app.command("score-circuit")(score_circuit)
app.command()(learn)
app.command()(probe)
app.command()(threshold)


@app.command()
def check(
    only: Annotated[list[str] | None, typer.Option("--only", help="Check this claim only; may be repeated.")] = None,
    full: Annotated[
        bool,
        typer.Option("--full", help="The paper's sizes: hours; what was found is kept under --out and not repeated."),
    ] = False,
    processes: Annotated[
        int | None, typer.Option("--processes", help="Checks at a time (default: one a core).")
    ] = None,
    device: Device = "cpu",
    model: Annotated[str, typer.Option("--model", help="P1: the pretrained model to probe.")] = "minilm",
    out: Annotated[Path, typer.Option("--out", help="Directory for report.json and index.html.")] = Path("report"),
    as_json: AsJson = False,
) -> None:
    """Check the paper's claims one by one, and write a page; exit status 1 if any fails.

    [bold]Examples[/bold]

      geotheory check

      geotheory check --only S1 --only M4
    """
    from paper_checks import report, runner
    from paper_checks.claims import CLAIMS, Verdict
    from paper_checks.scope import Scope

    claims, scope = runner.chosen(only or ()), Scope(full=full, directory=out, device=device, model=model)
    ensure_folder(out)
    results = []
    for result in runner.run(claims, scope, processes=processes):
        results.append(result)
        if not as_json:
            claim, evidence = result.claim, result.evidence
            typer.echo(
                f"{evidence.verdict.value:8} {claim.id:3} [{claim.mark.value}] {claim.statement} ({result.seconds:.1f} s)"
            )
            if evidence.why:
                typer.echo(f"         {evidence.why}")
    order = [claim.id for claim in CLAIMS]
    record = report.record(sorted(results, key=lambda result: order.index(result.claim.id)), scope)
    written = report.write_json(record, out)
    if as_json:
        typer.echo(written.read_text(encoding="utf-8"), nl=False)
    else:
        typer.echo(f"{report.summary(record)}; figures: {written}")
    try:
        from paper_checks.page import page

        made = write_whole(out / "index.html", page(record))
    except ImportError as missing:
        typer.echo(f"no page: {missing.name} is not installed; pip install 'geotheory[report]'", err=True)
    else:
        typer.echo(f"page: {made}", err=as_json)
    if any(result.evidence.verdict is Verdict.fails for result in results):
        raise typer.Exit(1)
