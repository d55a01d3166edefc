"""The checks can fail, a crash stops none of the others, and the report says what was found."""

import json

import pytest

import constructions
from geotheory import FactTable
from geotheory.errors import UnknownName
from paper_checks import report, theory
from paper_checks.claims import CLAIMS, Claim, Mark, Verdict


def test_every_claim_is_complete():
    assert len({claim.id for claim in CLAIMS}) == len(CLAIMS)
    for claim in CLAIMS:
        assert claim.statement.endswith(".")
        assert claim.refuted_by.endswith(".")
        assert callable(claim.check)


@pytest.mark.parametrize("claim", [c for c in CLAIMS if c.id != "X1"], ids=lambda c: c.id)
def test_theory_holds(claim):
    evidence = claim.run()
    assert evidence.verdict is Verdict.holds, evidence.why
    assert evidence.figures


def planted():
    """d = R: a single coordinate a relation cannot tell more than two attributes apart."""
    built = constructions.single_hop(FactTable.random_bijections(entities=8, relations=2))
    # Keep the first coordinate of every block.
    m = built.code.length
    for r in range(2):
        built.transformer.embedding[:8, r * m + 1 : (r + 1) * m] = 0
    return theory._recalls(built)


def crash():
    raise ZeroDivisionError("planted")


def test_a_wrong_claim_fails_with_its_counterexample_and_a_crash_stops_nothing(tmp_path):
    claims = [
        Claim("W", "One coordinate a relation is enough.", Mark.new, "Any world of three.", planted),
        Claim("C", "This check crashes.", Mark.new, "Nothing.", crash),
        next(c for c in CLAIMS if c.id == "S3"),
    ]
    results = list(report.run(claims))
    verdicts = {claim.id: evidence.verdict for claim, evidence, _ in results}
    assert verdicts == {"W": Verdict.fails, "C": Verdict.fails, "S3": Verdict.holds}
    assert "wrong: (x" in results[0][1].why
    assert "ZeroDivisionError: planted" in results[1][1].why
    written = json.loads(report.write_json(results, tmp_path).read_text())
    assert [c["verdict"] for c in written["claims"]] == ["fails", "fails", "holds"]
    assert written["schema"] == report.SCHEMA


def test_claims_are_chosen_by_id():
    assert [c.id for c in report.chosen(["m4", "S1"])] == ["S1", "M4"]
    assert len(report.chosen()) == len(CLAIMS)
    with pytest.raises(UnknownName, match="did you mean S1"):
        report.chosen(["S11"])
