"""The report as one self-contained page: a verdict table, then a section for each claim; no network."""

import json
from collections.abc import Mapping
from html import escape
from typing import Any

from paper_checks.plots import figures
from paper_checks.report import summary

__all__ = ["page"]

Record = Mapping[str, Any]


def page(record: Record) -> str:
    """The page for a record (:func:`paper_checks.report.record`)."""
    from plotly.offline import get_plotlyjs

    drawn = figures(record)
    sections = "\n".join(_section(claim, drawn.get(claim["id"], [])) for claim in record["claims"])
    script = f"<script>{get_plotlyjs()}</script>" if drawn else ""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Geometric factual recall, checked</title>
<style>{_STYLE}</style>
{script}
</head>
<body>
<main>
<h1>Geometric factual recall, checked</h1>
<p class="lead">The claims of <i>Geometric Factual Recall in Transformers</i> (Ravfogel, Yehudai, Bruna, Bietti, 2026), and some
that are new: what each says, how it was checked, and what was found: <b>{escape(summary(record))}</b>. Marks: <b>paper</b>, as the
paper's summaries claim it; <b>sharper</b>, with explicit constants; <b>new</b>, not claimed there.</p>
{_table(record)}
{sections}
<footer>{_footer(record)}</footer>
</main>
</body>
</html>
"""


def _verdict(verdict: str) -> str:
    # A sign beside the word: colour alone tells a colour-blind reader, and a printer, nothing.
    sign = {"holds": "✓", "fails": "✗", "not run": "–"}[verdict]
    return f'<span class="verdict {verdict.replace(" ", "-")}">{sign}&nbsp;{verdict.replace(" ", "&nbsp;")}</span>'


def _table(record: Record) -> str:
    rows = "\n".join(
        f'<tr><td><a href="#{c["id"]}">{c["id"]}</a></td><td>{_verdict(c["verdict"])}</td><td class="mark">{c["mark"]}</td>'
        f"<td>{escape(c['statement'])}</td></tr>"
        for c in record["claims"]
    )
    head = "<tr><th>Claim<th>Verdict<th class=mark>Mark<th>Statement"
    return f"<table class=verdicts><thead>{head}</thead><tbody>{rows}</tbody></table>"


def _section(claim: Record, drawn: list[tuple[str, Any]]) -> str:
    parts = [
        f'<section id="{claim["id"]}">',
        f"<h2>{claim['id']} {_verdict(claim['verdict'])} <small>{claim['mark']}</small></h2>",
        f'<p class="statement">{escape(claim["statement"])}</p>',
    ]
    if claim["formula"]:
        from latex2mathml.converter import convert

        parts.append(f'<div class="formula">{convert(claim["formula"], display="block")}</div>')
    if claim["why"]:
        kind = "counterexample" if claim["verdict"] == "fails" else "reason"
        parts.append(
            f'<p class="why {kind}"><b>{"Why" if kind == "reason" else "Counterexample"}:</b> {escape(claim["why"])}</p>'
        )
    if claim["proof"]:
        parts.append(f"<p>{escape(claim['proof'])}</p>")
    parts.append(f"<p><b>Refuted by:</b> {escape(claim['refuted by'])}</p>")
    if "fit" in claim["figures"]:
        parts.append(f"<p><b>Found:</b> {_fit(claim['figures']['fit'])}</p>")
    for caption, figure in drawn:
        inner = figure.to_html(
            full_html=False, include_plotlyjs=False, config={"displayModeBar": False, "responsive": True}
        )
        parts.append(f"<figure>{inner}<figcaption>{escape(caption)}</figcaption></figure>")
    if claim["figures"]:
        parts.append(
            f"<details><summary>Figures as measured ({claim['seconds']:.1f} s)</summary>"
            f"<pre>{escape(_compact(claim['figures']))}</pre></details>"
        )
    if claim["command"]:
        parts.append(f"<p class=command>Reproduce: <code>geotheory check --only {claim['id']}</code>, or by hand ")
        parts.append(f"<code>{escape(claim['command'])}</code></p>")
    parts.append("</section>")
    return "\n".join(parts)


def _fit(fit: Record) -> str:
    return (
        f"d = {fit['logarithmic']:.3g} R log<sub>2</sub> N, with a root mean square error of ln d of "
        f"{fit['logarithmic_error']:.3f}; "
        f"d = {fit['factor']:.3g} N<sup>{fit['exponent_entities']:.2f}</sup> R<sup>{fit['exponent_relations']:.2f}</sup>, with "
        f"{fit['power_error']:.3f}."
    )


def _compact(figures_: Any, indent: str = "") -> str:
    """JSON, with what fits into a line on one."""
    whole = json.dumps(figures_, ensure_ascii=False)
    if len(indent) + len(whole) <= 100:
        return whole
    inner = indent + "  "
    if isinstance(figures_, Mapping):
        rows = [f"{json.dumps(key)}: {_compact(value, inner)}" for key, value in figures_.items()]
        return "{\n" + ",\n".join(inner + row for row in rows) + "\n" + indent + "}"
    if isinstance(figures_, list):
        return "[\n" + ",\n".join(inner + _compact(value, inner) for value in figures_) + "\n" + indent + "]"
    return whole


def _footer(record: Record) -> str:
    packages = ", ".join(f"{name} {number}" for name, number in record["packages"].items() if number)
    machine = record["machine"]
    return escape(
        f"geotheory {record['geotheory']}, Python {record['python']}, {packages}; {machine['system']}, {machine['processors']} "
        f"processors, {machine['device']}; {'full' if record['full'] else 'quick'} sizes."
    )


_STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0; background: #fff; color: #1a1a1a; font: 16px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; }
main { max-width: 58rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; }
h1 { font-size: 1.8rem; line-height: 1.2; margin: .5rem 0; }
h2 { font-size: 1.25rem; margin: 0 0 .5rem; display: flex; gap: .6rem; align-items: baseline; flex-wrap: wrap; }
h2 small { font-weight: 400; color: #555; font-size: .85rem; }
section { border-top: 1px solid #ddd; padding: 1.5rem 0 .75rem; }
table.verdicts { border-collapse: collapse; width: 100%; margin: 1rem 0 2rem; font-size: .95rem; }
.verdicts th, .verdicts td { text-align: left; vertical-align: top; padding: .4rem .6rem .4rem 0; }
.verdicts tr { border-bottom: 1px solid #e5e5e5; }
.verdict { font-weight: 600; font-size: .9rem; white-space: nowrap; }
.verdict.holds { color: #00614a; } .verdict.fails { color: #a63a00; } .verdict.not-run { color: #555; }
.statement { font-size: 1.05rem; font-weight: 500; }
.formula { overflow-x: auto; padding: .5rem 0; font-size: 1.1rem; }
.why { padding: .6rem .8rem; border-left: 4px solid #a63a00; background: #fdf3ee; overflow-wrap: anywhere; }
.why.reason { border-color: #888; background: #f5f5f5; }
figure { margin: 1rem 0; } figcaption { font-size: .9rem; color: #444; }
pre { overflow-x: auto; background: #f7f7f7; padding: .75rem; font-size: .8rem; line-height: 1.4; max-height: 28rem; }
code { background: #f3f3f3; padding: .1em .3em; border-radius: 3px; font-size: .88em; overflow-wrap: anywhere; }
summary { cursor: pointer; color: #333; }
a { color: #005a8c; }
footer { border-top: 1px solid #ddd; margin-top: 2rem; padding-top: 1rem; font-size: .85rem; color: #555; }
@media (max-width: 40rem) { th.mark, td.mark { display: none; } body { font-size: 15px; } h1 { font-size: 1.5rem; } }
@media print { details, .command { display: none; } section { break-inside: avoid; } main { max-width: none; padding: 0; } }
"""
