"""The experiments at sizes of seconds, and the page that is made of them, in a real browser."""

import re
from dataclasses import replace

import pytest

from paper_checks import empirical, report, runner
from paper_checks.claims import CLAIMS, Verdict
from paper_checks.learning import Setting
from paper_checks.page import page
from paper_checks.scope import Scope
from tests.paper_checks import browser

QUICK = Setting(
    32, 2, 24, subject_scale=0.01, unembedding_scale=4.0, steps=300, learning_rate=3e-3, evaluate_every=100, stop=False
)


@pytest.fixture(scope="module")
def results():
    """Theory as it is, experiments small: what the page needs of each claim."""
    measured = {
        empirical.measure_thresholds: empirical.thresholds((8, 16), (2, 3), (0, 1), 300, Scope()),
        empirical.measure_study: empirical.sides(QUICK, (0, 1), Scope()),
    }
    found = []
    for claim in CLAIMS:
        if claim.measure in measured:
            found.append(runner.Result(claim, claim.evidence(measured[claim.measure]), 1.0))
        else:
            found.extend(runner.run([claim], processes=1))
    return found


@pytest.fixture(scope="module")
def record(results):
    return report.record(results, Scope())


def test_experiments_give_figures(results):
    for result in results:
        if result.claim.id.startswith("L"):
            assert result.evidence.figures, result.evidence.why
        assert "the check itself failed" not in result.evidence.why


def test_experiments_can_fail(results):
    # Judged by rows that were frozen, readouts and freeze and swap must fail.
    study = empirical.sides(QUICK.but(steps=100), (0,), Scope())
    frozen = empirical.Sides(
        type(study.study)(
            study.study.frozen, study.study.frozen, study.study.control, study.study.control, None, "cpu"
        ),
        study.untrained,
        study.untrained,
        study.construction,
    )
    for judge in (empirical.readouts, empirical.freeze_and_swap, empirical.same_structure):
        figures, why = judge(frozen)
        assert figures
        assert why, judge
    thresholds = empirical.thresholds((8, 16), (2, 3), (0,), 300, Scope())
    other = {"none": "subjects", "subjects": "none"}
    swapped = tuple(replace(t, setting=t.setting.but(frozen=other[t.setting.frozen])) for t in thresholds.found)
    turned = replace(thresholds, found=swapped)
    assert empirical.frozen_threshold(thresholds)[1] != empirical.frozen_threshold(turned)[1]


def test_page_is_complete_and_needs_no_network(record):
    html = page(record)
    for claim in CLAIMS:
        assert f'<section id="{claim.id}">' in html
    head = html.split("<script>")[0]
    assert not re.search(r'(?:src|href)="https?:', re.sub(r"<script>.*?</script>", "", html, flags=re.S))
    assert "viewport" in head
    formulas = re.findall(r"<math.*?</math>", html, flags=re.S)
    assert len(formulas) >= 10
    # A backslash would be a command that was not understood.
    assert not [formula for formula in formulas if "\\" in formula]


def test_names_cannot_break_the_page(record):
    evil = '<script>alert("x")</script>'
    claims = [{**claim, "why": evil, "verdict": Verdict.fails.value} for claim in record["claims"][:2]]
    assert evil not in page({**record, "claims": claims})


@pytest.mark.skipif(browser.CHROMIUM is None, reason="no chromium here")
@pytest.mark.parametrize("width", [1280, 400])
def test_page_in_a_browser(record, width):
    seen = browser.look(page(record), width)
    assert seen["errors"] == []
    assert seen["scroll"] <= width  # nothing sticks out
    assert len(seen["figures"]) >= 11
    for figure in seen["figures"]:
        assert figure["marks"] > 0, figure
        assert 0 < figure["width"] <= width, figure
        assert figure["height"] > 200, figure
    assert seen["math"] >= 10


@pytest.mark.skipif(browser.CHROMIUM is None, reason="no chromium here")
def test_the_browser_sees_what_is_wrong(record):
    html = page({**record, "claims": record["claims"][:4]})
    broken = html.replace(
        "</main>", '<figure><figcaption>empty</figcaption></figure><p style="width:3000px">wide</p></main>'
    )
    broken = broken.replace("</main>", "<script>console.error('planted'); missing.thing()</script></main>")
    seen = browser.look(broken)
    assert any("planted" in error for error in seen["errors"])
    assert any("missing is not defined" in error for error in seen["errors"])
    assert seen["scroll"] > 1280
    assert seen["figures"][-1]["marks"] == 0
