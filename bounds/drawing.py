"""Pictures: a coloured graph with its legend, and the curves of the bounds (matplotlib)."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import networkx as nx

from geotheory.errors import InvalidArgument

if TYPE_CHECKING:
    from bounds.curves import SplitCurve, ThresholdCurve

__all__ = ["draw", "plot_dimensions", "plot_split", "plot_threshold"]

# Okabe and Ito's colours: told apart by colour-blind readers.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D31")


def canvas(size: tuple[float, float]) -> Any:
    """An empty matplotlib figure of so many inches; the object interface: no window, no global state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _figure(size: tuple[float, float]) -> tuple[Any, Any]:
    figure = canvas(size)
    return figure, figure.add_subplot()


def draw(graph: nx.MultiDiGraph, path: str | Path, *, title: str = "") -> Path:
    """Draw a graph on a circle, one colour a relation, with a legend; readable up to some 16 entities.

    Both directions of an undirected edge are drawn as one line without arrow.

    Raises
    ------
    InvalidArgument
        More relations than there are colours to tell apart (8).
    """
    relations = sorted({r for *_, r in graph.edges(data="relation")}, key=str)
    if len(relations) > len(COLOURS):
        raise InvalidArgument(f"{len(relations)} relations: a picture tells at most {len(COLOURS)} apart")
    from matplotlib.lines import Line2D
    from matplotlib.patches import Circle

    figure, axes = _figure((7.2, 6))
    places = nx.circular_layout(graph)
    nx.draw_networkx_nodes(graph, places, ax=axes, node_size=420, node_color="white", edgecolors="#444444")
    nx.draw_networkx_labels(graph, places, ax=axes, font_size=10)
    for i, relation in enumerate(relations):
        edges = [(x, y) for x, y, r in graph.edges(data="relation") if r == relation and x != y]
        both = {(x, y) for x, y in edges if (y, x) in edges}
        bend = f"arc3,rad={0.08 + 0.1 * i}"
        one_way = [edge for edge in edges if edge not in both]
        two_way = [(x, y) for x, y in both if str(x) < str(y)]
        style = {"ax": axes, "edge_color": COLOURS[i], "width": 1.8, "node_size": 420, "connectionstyle": bend}
        nx.draw_networkx_edges(graph, places, edgelist=one_way, arrowstyle="-|>", arrowsize=14, **style)
        nx.draw_networkx_edges(graph, places, edgelist=two_way, arrowstyle="-", **style)
        for x, y, r in graph.edges(data="relation"):
            if x == y and r == relation:
                # Loops stand outside the circle, one ring a relation.
                radius = 0.09 + 0.035 * i
                centre = places[x] * (1 + radius / max(1e-9, float((places[x] ** 2).sum() ** 0.5)))
                axes.add_patch(Circle(centre, radius, fill=False, color=COLOURS[i], lw=1.8, zorder=0.5))
    handles = [Line2D([], [], color=COLOURS[i], lw=2.5, label=f"relation {r}") for i, r in enumerate(relations)]
    axes.legend(handles=handles, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    axes.set_title(title)
    axes.set_axis_off()
    axes.margins(0.12)
    axes.set_aspect("equal")
    figure.savefig(path, dpi=150)
    return Path(path)


def plot_threshold(curve: "ThresholdCurve", path: str | Path, *, title: str = "") -> Path:
    """Bits per subject against shared bits (B3)."""
    figure, axes = _figure((7.2, 4.4))
    P, D = zip(*curve.points)
    axes.plot(P, D, color=COLOURS[0], lw=2)
    axes.fill_between(P, D, color=COLOURS[0], alpha=0.12, lw=0)
    axes.annotate("impossible", (0.06 * curve.everything, 0.45 * max(D)), color=COLOURS[0])
    axes.set_xlabel("bits P in the shared weights")
    axes.set_ylabel("bits D per subject")
    axes.set_ylim(bottom=0)
    axes.set_xlim(0, curve.everything)
    return _finish(figure, axes, path, title)


def plot_split(curve: "SplitCurve", path: str | Path, *, title: str = "") -> Path:
    """Bits per attribute against bits per subject (B2), with the points of meet in the middle."""
    figure, axes = _figure((7.2, 4.8))
    shown = [(x, y) for x, y in curve.points if y > 0]
    axes.plot(*zip(*shown), color=COLOURS[0], lw=2, label="at least (B2)")
    axes.fill_between(*zip(*shown), 1, color=COLOURS[0], alpha=0.12, lw=0)
    both = {f: point for f, point in curve.meet_in_middle.items() if min(point) > 0}
    if both:
        axes.plot(*zip(*both.values()), "o", color=COLOURS[1], ms=8, label="meet in the middle (T5)")
        for f, point in both.items():
            axes.annotate(f"f = {f}", point, textcoords="offset points", xytext=(9, 5))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("bits per subject, D_in")
    axes.set_ylabel("bits per attribute, D_out")
    axes.legend(frameon=False)
    return _finish(figure, axes, path, title)


def plot_dimensions(entities: int, relations: int, hops: int, path: str | Path) -> Path:
    """Dimension of each construction against the number of entities, one bit a coordinate, above the least possible (dotted)."""
    from bounds.minimum import dimension_curves

    at = [2**e for e in range(3, max(20, entities.bit_length() + 4))]
    sizes, least = dimension_curves(at, relations, hops)
    figure, axes = _figure((7.2, 4.4))
    for colour, (name, d) in zip(COLOURS, sizes.items()):
        axes.plot(at, d, color=colour, lw=2, label=name.replace("_", " "))
    for colour, (name, bits) in zip(("black", "0.45"), least.items()):
        axes.plot(at, bits, ":", color=colour, lw=2, label=f"least possible, {name}")
    axes.axvline(entities, color="0.8", lw=1, zorder=0)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("entities N")
    axes.set_ylabel("dimension d")
    axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return _finish(figure, axes, path, f"R = {relations:,} relations, k = {hops} hops")


def _finish(figure: Any, axes: Any, path: str | Path, title: str) -> Path:
    axes.set_title(title)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
    return Path(path)
