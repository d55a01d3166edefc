"""Pictures of what was learned (matplotlib): thresholds, and one study from all sides."""

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import torch

from bounds.drawing import COLOURS, canvas
from paper_checks.learning.study import Study
from paper_checks.learning.thresholds import Threshold

__all__ = ["plot_study", "plot_thresholds"]

NAMES = {"none": "trained", "subjects": "subjects frozen", "unembedding": "W_U frozen", "embeddings": "W_E, W_U frozen"}
MARKERS = "osD^vP*X"


def plot_thresholds(found: Sequence[Threshold], path: str | Path, *, device: str = "cpu") -> Path:
    """Threshold dimension against `N` for each number of relations: trained and frozen side by side, the construction above."""
    regimes = list(dict.fromkeys(t.setting.frozen for t in found))
    figure = canvas((4.6 * len(regimes) + 0.4, 4.2))
    axes = figure.subplots(1, len(regimes), squeeze=False)[0]
    relations = sorted({t.setting.relations for t in found})
    for axis, regime in zip(axes, regimes):
        for R in relations:
            mine = sorted(
                (t for t in found if t.setting.frozen == regime and t.setting.relations == R),
                key=lambda t: t.setting.entities,
            )
            if not mine:
                continue
            colour = COLOURS[relations.index(R) % len(COLOURS)]
            N = [t.setting.entities for t in mine]
            axis.plot(N, [t.d for t in mine], MARKERS[relations.index(R) % 8] + "-", color=colour, label=f"R = {R}")
            if regime == regimes[0]:
                axis.plot(N, [t.construction for t in mine], ":", color=colour, linewidth=1)
        axis.set(xscale="log", yscale="log", xlabel="N entities", title=NAMES.get(regime, regime))
        axis.set_xticks(sorted({t.setting.entities for t in found}), sorted({t.setting.entities for t in found}))
        axis.minorticks_off()
        axis.grid(alpha=0.25)
    axes[0].set_ylabel(f"smallest d with {found[0].share:.0%} right")
    low, high = min(t.d for t in found), max(max(t.d, t.construction) for t in found)
    ticks = [2**i for i in range(20) if low / 2 <= 2**i <= high * 2]
    for axis in axes:
        axis.set_ylim(low / 1.3, high * 1.3)
        axis.set_yticks(ticks, ticks)
        axis.minorticks_off()
    if len(regimes) > 1:
        axes[0].annotate(
            "dotted: closed form (T1), one bit a coordinate",
            (0.98, 0.02),
            xycoords="axes fraction",
            ha="right",
            fontsize=8,
        )
    axes[-1].legend(frameon=False, fontsize=8, loc="upper left")
    first = found[0].setting
    figure.suptitle(
        f"Thresholds of gradient descent: {found[0].seeds} seeds, width 4 d, at most {first.steps:,} steps, {device}",
        fontsize=10,
    )
    figure.savefig(path, dpi=150)
    return Path(path)


def plot_study(found: Study, path: str | Path) -> Path:
    """Learning curves, readouts with their controls, freeze and swap, and the selectivity matrix."""
    figure = canvas((13.5, 3.8))
    axes = figure.subplots(1, 4)
    setting = found.setting
    for runs, colour, name in ((found.trained, COLOURS[0], "trained"), (found.frozen, COLOURS[1], "subjects frozen")):
        for i, run in enumerate(runs):
            axes[0].plot(
                [point.step for point in run.curve],
                [point.accuracy for point in run.curve],
                ".-",
                color=colour,
                label=name if i == 0 else None,
            )
    axes[0].set(xlabel="steps", ylabel="share of facts right", title="Learning", ylim=(0, 1.03))
    axes[0].legend(frameon=False, fontsize=8)

    bars = [
        ("trained", [a.superposition.r2 for a in found.found], COLOURS[0]),
        ("facts\nshuffled", [a.shuffled_r2 for a in found.found], COLOURS[5]),
        ("frozen", [a.superposition.r2 for a in found.control], COLOURS[1]),
    ]
    _bars(axes[1], bars, "Superposition: held-out $R^2$")
    transfers = [
        ("new facts", [a.transfer.mean for a in found.found], COLOURS[0]),
        ("frozen", [a.transfer.mean for a in found.control], COLOURS[1]),
        ("chance", [1 / setting.entities], "0.5"),
    ]
    _bars(axes[2], transfers, "Freeze and swap: zero-shot right")

    matrix = torch.stack([a.interventions.selectivity for a in found.found]).mean(0)
    image = axes[3].imshow(matrix.tolist(), vmin=0, vmax=1, cmap="cividis")
    axes[3].set(xlabel="relation asked", ylabel="neurons shut of relation", title="Right answers lost")
    axes[3].set_xticks(range(setting.relations))
    axes[3].set_yticks(range(setting.relations))
    figure.colorbar(image, ax=axes[3], shrink=0.8)
    seeds = ", ".join(str(run.seed) for run in found.trained)
    figure.suptitle(
        f"N = {setting.entities:,}, R = {setting.relations}, d = {setting.d}, width {setting.neurons}, seeds {seeds}, "
        f"{found.device}",
        fontsize=10,
    )
    figure.savefig(path, dpi=150)
    return Path(path)


def _bars(axis: Any, bars: list[tuple[str, list[float], str]], title: str) -> None:
    for i, (_, values, colour) in enumerate(bars):
        axis.bar(i, max(0.0, median(values)), color=colour, width=0.65)
        axis.plot([i] * len(values), values, "k.", markersize=4)
        axis.annotate(
            f"{median(values) + 0.0:.2f}".replace("-0.00", "0.00"),
            (i, max(0.0, median(values))),
            ha="center",
            va="bottom",
            fontsize=8,
        )
    axis.set_xticks(range(len(bars)), [name for name, *_ in bars], fontsize=8)
    axis.set(title=title, ylim=(0, 1.1))
