"""The report's interactive figures (plotly), each from the record of a run and the closed forms alone."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import bounds
from bounds.drawing import COLOURS
from bounds.minimum import dimension_curves
from constructions.sizes import size

__all__ = ["figures"]

Record = Mapping[str, Any]
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "star", "cross", "triangle-down")


def figures(record: Record) -> dict[str, list[tuple[str, Any]]]:
    """For each claim's id its figures, as (caption, plotly figure); none for what was not run."""
    found = {claim["id"]: claim for claim in record["claims"]}
    drawn: dict[str, list[tuple[str, Any]]] = {}
    for name, draw in _FIGURES.items():
        if name in found and found[name]["figures"]:
            drawn[name] = list(draw({key: claim["figures"] for key, claim in found.items() if claim["figures"]}))
            for _, figure in drawn[name]:
                _label_logarithms(figure)
    return drawn


def _figure(
    x: str, y: str, *, log_x: bool = False, log_y: bool = False, bars: bool = False, height: int = 400, **layout: Any
) -> Any:
    from plotly import graph_objects as go

    figure = go.Figure()
    figure.update_layout(
        template="simple_white",
        height=height,
        margin={"l": 64, "r": 16, "t": 16, "b": 56},
        font={"family": "system-ui, sans-serif", "size": 13, "color": "#1a1a1a"},
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0},
        hoverlabel={"font": {"size": 13}},
        **layout,
    )
    kind = "category" if bars else "log" if log_x else "linear"
    figure.update_xaxes(title=x, type=kind, showgrid=not bars, gridcolor="#eee", automargin=True)
    figure.update_yaxes(title=y, type="log" if log_y else "linear", showgrid=True, gridcolor="#eee")
    return figure


def _label_logarithms(figure: Any) -> None:
    """Ticks at powers of ten, or at 1, 2, 5 where a logarithmic axis spans little."""
    for axis, name in ((figure.layout.xaxis, "x"), (figure.layout.yaxis, "y")):
        values = (
            [float(v) for trace in figure.data for v in (trace[name] if trace[name] is not None else ())]
            if axis.type == "log"
            else []
        )
        if not values:
            continue
        low, high = min(values), max(values)
        steps = (1,) if high / low > 2000 else (1, 2, 5) if high / low > 12 else (1, 1.5, 2, 3, 4, 5, 6, 8)
        decades = range(-3, 20, 3 if high / low > 1e7 else 1)
        ticks = [step * 10.0**e for e in decades for step in steps]
        axis.tickvals = [tick for tick in ticks if low / 1.3 <= tick <= high * 1.3]
        axis.ticktext = [
            f"{tick:,.10g}" if tick < 1e6 else f"10<sup>{len(str(int(tick))) - 1}</sup>" for tick in axis.tickvals
        ]


def _line(figure: Any, name: str, points: Iterable[tuple[float, float]], colour: str, **options: Any) -> None:
    mode = options.pop("mode", "lines+markers")
    line = {"color": colour, "dash": options.pop("dash", "solid"), "width": options.pop("width", 2)}
    marker = {"symbol": options.pop("symbol", "circle"), "size": options.pop("size", 7), "color": colour}
    x, y = zip(*points)
    figure.add_scatter(x=x, y=y, name=name, mode=mode, line=line, marker=marker, **options)


def _bars(figure: Any, name: str, labels: Sequence[str], values: Sequence[float], colour: str) -> None:
    figure.add_bar(
        x=list(labels),
        y=list(values),
        name=name,
        marker_color=colour,
        text=[f"{v:.2f}" for v in values],
        textposition="outside",
    )


# The theory


def _dimensions(_: Record) -> Iterator[tuple[str, Any]]:
    R, k = 4, 2
    sizes = [2**e for e in range(3, 41)]
    figure = _figure("N entities", "dimension d", log_x=True, log_y=True)
    built, least = dimension_curves(sizes, R, k)
    for i, (kind, d) in enumerate(built.items()):
        _line(figure, kind, zip(sizes, d), COLOURS[i], mode="lines")
    # Bits a subject are coordinates, at one bit a coordinate.
    for colour, (name, bits) in zip(("#000000", "#777777"), least.items()):
        _line(figure, f"least possible, {name}", zip(sizes, bits), colour, mode="lines", dash="dot")
    yield (
        f"Dimension of each construction against N, at R = {R} and k = {k}, with the lower bounds below them (dotted).",
        figure,
    )


def _threshold(_: Record) -> Iterator[tuple[str, Any]]:
    N, R, k = 4096, 16, 2
    curve = bounds.threshold_curve(N, R, k, points=60)
    figure = _figure("P, bits in the shared weights", "D, bits per subject")
    _line(
        figure,
        "no model below",
        curve.points,
        COLOURS[0],
        mode="lines",
        fill="tozeroy",
        fillcolor="#0072B222",
    )
    direct = size("direct", entities=N, relations=R, hops=k)
    memory = size("key_value", entities=N, relations=R, hops=k)
    _line(figure, "direct", [(0, direct.bits_in)], COLOURS[1], mode="markers", symbol="diamond", size=11)
    _line(
        figure,
        "key_value",
        [(memory.bits_shared, memory.bits_in)],
        COLOURS[2],
        mode="markers",
        symbol="square",
        size=11,
    )
    yield (
        f"Bits per subject that are needed beside P shared bits (B3), at N = {N:,}, R = {R}, k = {k}; the shaded region is "
        "impossible for a fixed unembedding.",
        figure,
    )


def _split(_: Record) -> Iterator[tuple[str, Any]]:
    N, R, k = 10**6, 4, 3
    curve = bounds.split_curve(N, R, k)
    figure = _figure("D_in, bits per subject", "D_out, bits per attribute", log_x=True, log_y=True)
    points = [(x, y) for x, y in curve.points if y > 0]
    _line(figure, "no model below (B2)", points, COLOURS[0], mode="lines")
    splits = {f: bits for f, bits in curve.meet_in_middle.items() if min(bits) > 0}
    figure.add_scatter(
        x=[b for b, _ in splits.values()],
        y=[b for _, b in splits.values()],
        name="meet in the middle (T5)",
        mode="markers+text",
        text=[f"f = {f}" for f in splits],
        textposition="top right",
        marker={"color": COLOURS[1], "size": 10, "symbol": "diamond"},
    )
    yield (
        f"Bits per attribute that are needed beside bits per subject, at N = {N:,}, R = {R}, k = {k}, with T5's points.",
        figure,
    )


def _associative(found: Record) -> Iterator[tuple[str, Any]]:
    figure = _figure("dimension d", "share of facts right", log_x=True)
    for i, row in enumerate(found["X1"]["measured"]):
        points = [(p["d"], p["accuracy"]) for p in row["associative"]]
        _line(figure, f"associative, N = {row['N']:,}", points, COLOURS[i], symbol=SYMBOLS[i])
        _line(
            figure,
            f"single_hop, N = {row['N']:,}",
            [(row["single_hop d"], 1.0)],
            COLOURS[i],
            mode="markers",
            symbol="star",
            size=12,
        )
    yield (
        "Share of facts that an associative memory recalls against its dimension; stars: the single-hop construction.",
        figure,
    )


def _steps(_: Record) -> Iterator[tuple[str, Any]]:
    N, R, k = 4096, 4, 6
    sizes = [size("chain_of_thought", entities=N, relations=R, hops=k, hops_per_step=j) for j in range(1, k + 1)]
    figure = _figure("steps emitted", "dimension d", log_y=True)
    _line(
        figure,
        "d",
        [(s.steps, s.d) for s in sizes],
        COLOURS[0],
        text=[f"j = {j}" for j in range(1, k + 1)],
    )
    figure.update_traces(mode="lines+markers+text", textposition="top right")
    yield f"Dimension against emitted steps for j hops per step, at N = {N:,}, R = {R}, k = {k}.", figure


# Experiments


def _accuracy(found: Record) -> Iterator[tuple[str, Any]]:
    trained, frozen = found["L1"], found.get("L2")
    regimes = [("trained", trained, "solid")] + ([("frozen", frozen, "dash")] if frozen else [])
    shapes = sorted({(N, R) for N, R, *_ in trained["runs"]})
    biggest = [shape for shape in shapes if shape[0] == max(N for N, _ in shapes)]
    figure = _figure("dimension d", "share of facts right, median of the seeds", log_x=True)
    for i, (N, R) in enumerate(biggest):
        for name, figures, dash in regimes:
            by_d: dict[int, list[float]] = {}
            for n, r, _, d, _, right in figures["runs"]:
                if (n, r) == (N, R):
                    by_d.setdefault(d, []).append(right)
            middle = [(d, sorted(rights)[len(rights) // 2]) for d, rights in sorted(by_d.items())]
            _line(figure, f"{name}, N = {N}, R = {R}", middle, COLOURS[i], dash=dash, symbol=SYMBOLS[i])
    yield (
        "Share of facts right against the dimension, for trained (solid) and frozen (dashed) subjects, where searches looked.",
        figure,
    )
    growth = _figure("N entities", "smallest d with 99% right", log_x=True, log_y=True)
    for name, figures, dash in regimes:
        relations = sorted({t["R"] for t in figures["thresholds"]})
        for i, R in enumerate(relations):
            mine = sorted((t["N"], t["d"]) for t in figures["thresholds"] if t["R"] == R)
            _line(growth, f"{name}, R = {R}", mine, COLOURS[i], dash=dash, symbol=SYMBOLS[i])
    yield "Threshold dimensions, trained (solid) and frozen (dashed).", growth


def _readouts(found: Record) -> Iterator[tuple[str, Any]]:
    figures = found["L3"]
    figure = _figure("", "held-out R²", bars=True, showlegend=False, height=340)
    shuffled = figures["superposition R2, facts shuffled"]
    for name, values, colour in (
        ("trained", figures["superposition R2"]["trained"], COLOURS[0]),
        ("facts shuffled", shuffled, COLOURS[5]),
        ("subjects frozen", figures["superposition R2"]["frozen"], COLOURS[1]),
    ):
        _bars(figure, name, [name], [max(0.0, sum(values) / len(values))], colour)
    figure.update_yaxes(range=[0, 1.1])
    yield f"Rows as superpositions of attribute vectors, judged on held-out subjects ({_setting(figures)}).", figure


def _interventions(found: Record) -> Iterator[tuple[str, Any]]:
    figures = found["L4"]
    names = ("relation swapped", "gates swapped", "component replaced", "component removed", "others kept")
    figure = _figure("", "rate", bars=True, barmode="group", height=380)
    for i, (label, colour) in enumerate((("measured", COLOURS[0]), ("control", COLOURS[4]))):
        _bars(figure, label, names, [sum(p[i] for p in figures[n]) / len(figures[n]) for n in names], colour)
    figure.update_yaxes(range=[0, 1.12])
    yield f"Interventions and their controls ({_setting(figures)}).", figure
    from plotly import graph_objects as go

    matrix = figures["selectivity"]
    R = len(matrix)
    heat = _figure("relation asked", "neurons shut of relation", height=360)
    heat.add_trace(
        go.Heatmap(
            z=matrix,
            zmin=0,
            zmax=1,
            colorscale="Cividis",
            text=[[f"{v:.2f}" for v in row] for row in matrix],
            texttemplate="%{text}",
            hovertemplate="shut %{y}, asked %{x}: %{z:.3f} lost<extra></extra>",
            colorbar={"title": "lost", "thickness": 12},
        )
    )
    heat.update_xaxes(tickvals=list(range(R)), showgrid=False)
    heat.update_yaxes(tickvals=list(range(R)), showgrid=False, autorange="reversed")
    yield "Share of right answers lost when the neurons of one relation are shut.", heat


def _transfer(found: Record) -> Iterator[tuple[str, Any]]:
    figures = found["L5"]
    figure = _figure("", "share of new facts right", bars=True, showlegend=False, height=340)
    for name, values, colour in (
        ("trained decoder", figures["zero-shot"]["trained"], COLOURS[0]),
        ("subjects frozen", figures["zero-shot"]["frozen"], COLOURS[1]),
        ("chance", [figures["chance"]], "#777777"),
        ("closed form", [1.0], COLOURS[2]),
    ):
        _bars(figure, name, [name], [sum(values) / len(values)], colour)
    figure.update_yaxes(range=[0, 1.12])
    yield f"New random bijections, rows set by the linear fit, no gradient step ({_setting(figures)}).", figure


def _selector(found: Record) -> Iterator[tuple[str, Any]]:
    figures = found["L6"]
    figure = _figure("", "share", bars=True, barmode="group", height=340)
    for quantity, colour in (("selects", COLOURS[0]), ("leaks", COLOURS[1])):
        values = figures[quantity]
        each = [sum(values[n]) / len(values[n]) for n in ("trained", "untrained")] + [values["construction"]]
        _bars(figure, quantity, ("trained", "untrained", "construction"), each, colour)
    figure.update_yaxes(range=[0, 1.15])
    yield (
        f"What the decoder reads of its own relation's component, and leaks of the others' ({_setting(figures)}).",
        figure,
    )


def _probes(found: Record) -> Iterator[tuple[str, Any]]:
    from paper_checks.language_models.probe import Reading, best_readings

    for name, probed in found["P1"]["sets"].items():
        best = best_readings(map(Reading.from_dict, probed["readings"]))
        names = [reading.relation for reading in best]
        figure = _figure("", "share of held-out subjects right", bars=True, barmode="group", height=380)
        _bars(figure, "read at the best layer", names, [reading.top1 for reading in best], COLOURS[0])
        _bars(figure, "best control", names, [reading.control for reading in best], COLOURS[4])
        figure.update_yaxes(range=[0, 1.12])
        yield (
            f"Attributes of {name} read linearly from {found['P1']['model']}, beside the best of their controls.",
            figure,
        )


def _setting(figures: Record) -> str:
    s = figures["setting"]
    return f"N = {s['N']:,}, R = {s['R']}, d = {s['d']}, seeds {', '.join(map(str, s['seeds']))}"


_FIGURES: dict[str, Callable[[Record], Iterator[tuple[str, Any]]]] = {
    "M1": _dimensions,
    "M3": _threshold,
    "M5": _steps,
    "M6": _split,
    "L1": _accuracy,
    "L3": _readouts,
    "L4": _interventions,
    "L5": _transfer,
    "L6": _selector,
    "P1": _probes,
    "X1": _associative,
}
