"""The commands `geotheory learn` and `geotheory threshold`."""

import json
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from geotheory.cli_common import AsJson, Device, ensure_folder, print_json, progress_bar
from geotheory.errors import InvalidArgument
from geotheory.files import write_whole

if TYPE_CHECKING:
    from paper_checks.learning.thresholds import Threshold

__all__ = ["learn", "threshold"]

Relations = Annotated[int, typer.Option("-R", "--relations", help="Number of relations (random bijections).")]
Frozen = Annotated[str, typer.Option("--frozen", help="none, subjects, unembedding or embeddings.")]
Steps = Annotated[int, typer.Option("--steps", help="Optimizer steps at most.")]
Batch = Annotated[int | None, typer.Option("--batch", help="Queries a step (default: all of them).")]
Rate = Annotated[float, typer.Option("--learning-rate", help="Of AdamW.")]
Decay = Annotated[float, typer.Option("--weight-decay", help="Of AdamW.")]
Schedule = Annotated[str, typer.Option("--schedule", help="cosine, linear or constant.")]
SubjectScale = Annotated[float, typer.Option("--subject-scale", help="Spread of the subjects' initial rows.")]
UnembeddingScale = Annotated[
    float | None, typer.Option("--unembedding-scale", help="Spread of the initial unembedding (default 1 / sqrt d).")
]
Every = Annotated[int, typer.Option("--evaluate-every", help="Steps between two evaluations of the whole table.")]
Seeds = Annotated[int, typer.Option("--seeds", help="How many seeds, from --seed on.")]
Seed = Annotated[int, typer.Option("--seed", help="The first seed.")]


def learn(
    entities: Annotated[int, typer.Option("-N", "--entities", help="Number of entities.")],
    relations: Relations,
    d: Annotated[int, typer.Option("-d", "--dimension", help="Dimension of the hidden state.")],
    hops: Annotated[int, typer.Option("-k", "--hops", help="Hops of a query.")] = 1,
    width: Annotated[int | None, typer.Option("--width", help="Neurons (default 4 d).")] = None,
    chain_of_thought: Annotated[bool, typer.Option("--chain-of-thought", help="Emit every entity on the way.")] = False,
    attention: Annotated[str | None, typer.Option("--attention", help="uniform or learned.")] = None,
    residual: Annotated[bool, typer.Option("--residual", help="With a residual stream.")] = False,
    frozen: Frozen = "none",
    steps: Steps = 4000,
    batch: Batch = None,
    learning_rate: Rate = 3e-3,
    schedule: Schedule = "cosine",
    weight_decay: Decay = 0.0,
    subject_scale: SubjectScale = 1.0,
    unembedding_scale: UnembeddingScale = None,
    evaluate_every: Every = 100,
    go_on: Annotated[bool, typer.Option("--go-on", help="Train on after everything is learned.")] = False,
    seeds: Seeds = 1,
    seed: Seed = 0,
    device: Device = "cpu",
    study: Annotated[
        bool,
        typer.Option("--study", help="Also train the frozen control; read out, intervene, freeze and swap."),
    ] = False,
    relearn: Annotated[
        bool,
        typer.Option("--relearn", help="With --study: steps to learn new facts by the rows alone, and from scratch."),
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", help="Directory for results, weights, a figure, and a checkpoint.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Train a one-layer transformer on random bijections, and look at what it has learned.

    With --out a run that was killed goes on where it was. Exit status 1 if a seed has not learned every fact.

    [bold]Examples[/bold]

      geotheory learn -N 256 -R 4 -d 8 --learning-rate 0.01

      geotheory learn -N 64 -R 2 -d 32 --subject-scale 0.01 --unembedding-scale 4 --study --out learned
    """
    from paper_checks.learning import Setting, train
    from paper_checks.learning.study import study as studied

    setting = Setting(
        entities, relations, d, hops, width, chain_of_thought, attention, residual, frozen, subject_scale, unembedding_scale,
        steps, batch, learning_rate, schedule, 0, weight_decay, evaluate_every, not go_on,
    )  # fmt: skip
    chosen = list(range(seed, seed + seeds))
    if relearn and not study:
        raise InvalidArgument("--relearn goes with --study")
    if out is not None:
        ensure_folder(out)
    with ExitStack() as stack:
        show = progress_bar(stack, "training", setting.steps)

        def progress(step: int, active: int, points: list[Any]) -> None:
            worst = min((point.accuracy for point in points), default=0.0)
            show(step, f"{active} seeds going on, least {worst:.1%} right")

        if study:
            found = studied(setting, chosen, device=device, again=relearn, directory=out, progress=progress)
            runs, result, text = list(found.trained), found.to_dict(), f"{found}"
        else:
            checkpoint = out / "checkpoint.pt" if out is not None else None
            runs = train(setting, chosen, device=device, checkpoint=checkpoint, progress=progress)
            result, text = {"runs": [run.to_dict() for run in runs]}, ""
    if not as_json:
        for run in runs:
            typer.echo(str(run))
        if text:
            typer.echo(text)
    if out is not None:
        from safetensors.torch import save_file

        write_whole(out / "result.json", json.dumps(result, indent=2, ensure_ascii=False) + "\n")
        for run in runs:
            save_file(
                {name: weight.contiguous() for name, weight in run.transformer.state_dict().items()},
                out / f"seed-{run.seed}.safetensors",
            )
        if study:
            from paper_checks.learning.figures import plot_study

            plot_study(found, out / "study.png")
        if not as_json:
            typer.echo(f"written to {out}")
    if as_json:
        print_json(result)
    if not all(run.learned for run in runs):
        raise typer.Exit(1)


def threshold(
    entities: Annotated[list[int], typer.Option("-N", "--entities", help="Number of entities; may be repeated.")],
    relations: Annotated[list[int], typer.Option("-R", "--relations", help="Number of relations; may be repeated.")],
    frozen: Annotated[
        list[str] | None, typer.Option("--frozen", help="none, subjects, ...; may be repeated (default: these two).")
    ] = None,
    share: Annotated[
        list[float] | None, typer.Option("--share", help="Of the facts, to be right (default 0.99 and 1).")
    ] = None,
    width: Annotated[int | None, typer.Option("--width", help="Neurons (default 4 d).")] = None,
    start: Annotated[int | None, typer.Option("--start", help="First dimension to try.")] = None,
    steps: Steps = 1500,
    batch: Batch = 2048,
    learning_rate: Rate = 1e-2,
    schedule: Schedule = "cosine",
    weight_decay: Decay = 0.0,
    subject_scale: SubjectScale = 1.0,
    unembedding_scale: UnembeddingScale = None,
    evaluate_every: Every = 50,
    seeds: Seeds = 3,
    seed: Seed = 0,
    processes: Annotated[int | None, typer.Option("--processes", help="Default: one a core.")] = None,
    device: Device = "cpu",
    out: Annotated[
        Path | None, typer.Option("--out", help="File of runs, appended to; a sweep goes on from it.")
    ] = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Write a figure (PNG, SVG, PDF).")] = None,
    as_json: AsJson = False,
) -> None:
    """Search the smallest dimension at which gradient descent learns the facts, for trained and for frozen embeddings.

    [bold]Examples[/bold]

      geotheory threshold -N 16 -N 32 -R 2 --out runs.jsonl

      geotheory threshold -N 64 -N 256 -N 1024 -R 2 -R 4 -R 8 --out runs.jsonl --plot thresholds.png
    """
    from paper_checks.learning import Setting
    from paper_checks.learning.figures import plot_thresholds
    from paper_checks.learning.thresholds import fit_growth, sweep

    settings = [
        Setting(
            N, R, start or max(2, R * (N - 1).bit_length() // 5), width=width, frozen=regime, steps=steps, batch=batch,
            learning_rate=learning_rate, schedule=schedule, weight_decay=weight_decay, subject_scale=subject_scale,
            unembedding_scale=unembedding_scale, evaluate_every=evaluate_every,
        )
        for N in entities
        for R in relations
        for regime in frozen or ["none", "subjects"]
    ]  # fmt: skip
    shares = share or [0.99, 1.0]
    found: list[Threshold] = []
    with ExitStack() as stack:
        show = progress_bar(stack, "thresholds", len(settings) * len(shares))

        def progress(setting: Any, rows: list[dict[str, Any]]) -> None:
            right = ", ".join(f"{row['accuracy']:.1%}" for row in rows)
            show(len(found), f"N={setting.entities} R={setting.relations} {setting.frozen} d={setting.d}: {right}")

        options: dict[str, Any] = {"path": out, "processes": processes, "device": device, "progress": progress}
        for one in sweep(settings, shares, seeds=range(seed, seed + seeds), **options):
            found.append(one)
            s = one.setting
            if not as_json:
                typer.echo(
                    f"N={s.entities:,} R={s.relations} frozen: {s.frozen}: {one.share:.0%} right from d={one.d} on "
                    f"(seeds {', '.join(map(str, one.each))}); {one.bits_per_parameter:.2f} bits of facts a parameter; "
                    f"closed form {one.construction}, proved {one.least}"
                )
    fits: dict[str, Any] = {}
    for regime in dict.fromkeys(s.frozen for s in settings):
        for level in shares:
            alike = [t for t in found if (t.setting.frozen, t.share) == (regime, level)]
            mine = [(t.setting.entities, t.setting.relations, t.d) for t in alike]
            if len({N for N, *_ in mine}) > 1 and len({R for _, R, _ in mine}) > 1:
                fits[f"{regime}, {level:.0%}"] = fit_growth(mine)
    if plot is not None:
        plot_thresholds([t for t in found if t.share == shares[0]], plot, device=device)
    if as_json:
        result = {
            "thresholds": [t.to_dict() for t in found],
            "fits": {name: fit.to_dict() for name, fit in fits.items()},
        }
        print_json(result)
        return
    for name, fit in fits.items():
        typer.echo(f"{name}: {fit}")
    if plot is not None:
        typer.echo(f"figure: {plot}")
