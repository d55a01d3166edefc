"""The checks can fail, a crash stops none of the others, and the report says what was found."""

import json

import pytest

import constructions
from geotheory import FactTable
from geotheory.errors import UnknownName
from paper_checks import report, runner, theory
from paper_checks.claims import CLAIMS, Claim, Evidence, Mark, Verdict
from paper_checks.scope import NotRun, Scope
from tests.paper_checks.dying import die


def test_every_claim_is_complete():
    assert len({claim.id for claim in CLAIMS}) == len(CLAIMS)
    assert {"S1", "S2", "S3", "M1", "M2", "M3", "M4", "M5", "M6", "X1", "P1"} < {claim.id for claim in CLAIMS}
    assert {f"L{i}" for i in range(1, 7)} < {claim.id for claim in CLAIMS}
    for claim in CLAIMS:
        assert claim.statement.endswith(".")
        assert claim.refuted_by.endswith(".")
        assert claim.proof
        assert callable(claim.measure)


@pytest.mark.parametrize("claim", [c for c in CLAIMS if c.id[0] in "SM"], ids=lambda c: c.id)
def test_theory_holds(claim):
    evidence = claim.run()
    assert evidence.verdict is Verdict.holds, evidence.why
    assert evidence.figures
    json.dumps(evidence.to_dict())


def planted(_):
    """d = R: a single coordinate a relation cannot tell more than two attributes apart."""
    built = constructions.single_hop(FactTable.random_bijections(entities=8, relations=2))
    # Keep the first coordinate of every block.
    m = built.code.length
    for r in range(2):
        built.transformer.embedding[:8, r * m + 1 : (r + 1) * m] = 0
    return theory._recalls(built)


def crash(_):
    raise ZeroDivisionError("planted")


def elsewhere(_):
    raise NotRun("not on this machine")


def claim(name, measure, **options):
    return Claim(name, f"{name} is checked.", Mark.new, "Nothing.", measure, **options)


def test_a_wrong_claim_fails_with_its_counterexample_and_a_crash_stops_nothing(tmp_path):
    claims = [
        claim("W", planted),
        claim("C", crash),
        claim("P", elsewhere),
        next(c for c in CLAIMS if c.id == "S3"),
    ]
    results = list(runner.run(claims, processes=1))
    assert {r.claim.id: r.evidence.verdict for r in results} == {
        "W": Verdict.fails,
        "C": Verdict.fails,
        "P": Verdict.not_run,
        "S3": Verdict.holds,
    }
    assert "wrong: (x" in results[0].evidence.why
    assert "ZeroDivisionError: planted" in results[1].evidence.why
    assert results[2].evidence.why == "not on this machine"
    written = json.loads(report.write_json(report.record(results, Scope()), tmp_path).read_text())
    assert [c["verdict"] for c in written["claims"]] == ["fails", "fails", "not run", "holds"]
    assert written["schema"] == report.SCHEMA
    assert report.summary(written) == "1 holds, 2 fails, 1 not run"


def test_a_process_that_dies_takes_no_other_check_with_it():
    claims = [claim("D", die), *(c for c in CLAIMS if c.id in ("S1", "S3"))]
    found = {r.claim.id: r.evidence for r in runner.run(claims, processes=2)}
    assert found["D"].verdict is Verdict.fails
    assert "its process ended with status 3" in found["D"].why
    assert {found[name].verdict for name in ("S1", "S3")} == {Verdict.holds}


def test_shared_measurements_are_made_once():
    asked = []

    def measure(_):
        asked.append(1)
        return 3

    claims = [
        claim("A", measure, judge=lambda n: ({"n": n}, "")),
        claim("B", measure, judge=lambda n: ({"n": n}, f"{n} is too many")),
        claim("C", measure, judge=lambda n: n / 0),
    ]
    results = list(runner.run(claims, processes=1))
    assert len(asked) == 1
    assert [r.evidence.verdict for r in results] == [Verdict.holds, Verdict.fails, Verdict.fails]
    assert results[1].evidence.why == "3 is too many"
    assert "ZeroDivisionError" in results[2].evidence.why


def test_full_checks_are_kept_and_not_repeated(tmp_path):
    asked = []

    def measure(scope):
        asked.append(scope.full)
        return {"figure": 7}, ""

    one, scope = claim("A", measure), Scope(full=True, directory=tmp_path)
    first = next(runner.run([one], scope, processes=1))
    again = next(runner.run([one], scope, processes=1))
    assert asked == [True]
    assert again.evidence == first.evidence
    # A file cut short, and another version's, are measured again; quick checks are never kept.
    (tmp_path / "full" / "A.json").write_text('{"geotheory": ')
    next(runner.run([one], scope, processes=1))
    next(runner.run([one], Scope(directory=tmp_path), processes=1))
    next(runner.run([one], Scope(directory=tmp_path), processes=1))
    assert asked == [True, True, False, False]


def test_same_seed_same_report():
    def timeless(results):
        found = report.record(sorted(results, key=lambda r: r.claim.id), Scope())
        return [{k: v for k, v in c.items() if k != "seconds"} for c in found["claims"]]

    claims = runner.chosen(["S1", "S2", "M3", "M6"])
    assert timeless(runner.run(claims, processes=1)) == timeless(runner.run(claims, processes=2))


def test_claims_are_chosen_by_id():
    assert [c.id for c in runner.chosen(["m4", "S1"])] == ["S1", "M4"]
    assert len(runner.chosen()) == len(CLAIMS)
    with pytest.raises(UnknownName, match="did you mean S1"):
        runner.chosen(["S11"])


def test_evidence_survives_json():
    evidence = Evidence(Verdict.fails, {"a": [1, 2.5]}, "because")
    assert Evidence.from_dict(json.loads(json.dumps(evidence.to_dict()))) == evidence
