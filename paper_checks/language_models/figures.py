"""Read-outs by layer, with the band of their controls (matplotlib)."""

from pathlib import Path

from bounds.drawing import COLOURS, canvas
from paper_checks.language_models.probe import Probe

__all__ = ["plot_probe"]


def plot_probe(found: Probe, path: str | Path) -> Path:
    """One panel a relation: `top1` against the layer with its interval; grey up to the best of its controls."""
    names = list(dict.fromkeys(reading.relation for reading in found.readings))
    columns = min(3, len(names))
    rows = -(-len(names) // columns)
    figure = canvas((3.4 * columns, 2.7 * rows + 0.4))
    axes = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).flat
    for axis, name in zip(axes, names):
        mine = sorted((r for r in found.readings if r.relation == name), key=lambda r: r.layer)
        layers = [r.layer for r in mine]
        axis.fill_between(layers, 0, [r.control for r in mine], color="0.85", label="best control")
        axis.fill_between(
            layers, [r.low for r in mine], [r.high for r in mine], color=COLOURS[0], alpha=0.2, linewidth=0
        )
        axis.plot(layers, [r.top1 for r in mine], "o-", color=COLOURS[0], markersize=4, label="top 1, 95% interval")
        if all(r.affine is not None for r in mine if r.layer):
            affine = [(r.layer, r.affine) for r in mine if r.affine is not None]
            axis.plot(*zip(*affine), "s--", color=COLOURS[1], markersize=4, label="affine decoder")
        axis.set(title=f"{name} ({mine[0].candidates} attributes)", ylim=(0, 1.03))
    for axis in list(axes)[len(names) :]:
        axis.set_visible(False)
    first = figure.axes[0]
    first.legend(frameon=False, fontsize=8)
    figure.supxlabel("layer", fontsize=10)
    figure.supylabel("share of held-out subjects right", fontsize=10)
    figure.suptitle(
        f"{found.model}: attributes read linearly from the subject's last token, {mine[0].subjects} subjects",
        fontsize=10,
    )
    figure.savefig(path, dpi=150)
    return Path(path)
