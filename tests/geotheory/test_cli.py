"""The command line, end to end."""

import io
import json
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from geotheory.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples"


def geotheory(*arguments, status=0):
    """Run the command; returns what it printed on its output, or on its error output if bad input (status 2) is expected."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["geotheory", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            main()
    assert (stopped.value.code or 0) == status, f"{out.getvalue()}\n{err.getvalue()}"
    return err.getvalue() if status == 2 else out.getvalue()


def test_the_command_itself():
    command = [Path(sys.executable).with_name("geotheory"), "size", "-N", "0", "-R", "3"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: entities must be at least 1, not 0\n"


def test_size_of_the_paper():
    shown = geotheory("size", "-N", 4096, "-R", 16)
    row = next(line for line in shown.splitlines() if "single-hop" in line)
    for figure in ("196", "192", "1,765,348", "192 (B1)", "1", "bits per subject"):
        assert f" {figure} " in row, row
    rows = json.loads(geotheory("size", "-N", 4096, "-R", 16, "--json"))["rows"]
    assert (rows[0]["construction"], rows[0]["d"], rows[0]["least"], rows[0]["ratio"]) == (
        "single_hop",
        196,
        192.0,
        1.0,
    )


def test_size_shows_the_trade_off():
    rows = json.loads(geotheory("size", "-N", 4096, "-R", 16, "-k", 3, "--json"))["rows"]
    d = {row["construction"]: row["d"] for row in rows if row["d"]}
    assert (
        d["direct"]
        > 49_152
        > d["chain_of_thought, j = 2"]
        > d["meet_in_middle, f = 1"]
        > d["chain_of_thought"]
        > d["key_value"]
    )
    assert all(row["ratio"] is None or row["ratio"] >= 1 for row in rows)


def test_counting():
    assert geotheory("count", "simple", "-N", 5, "-R", 2) == "552\n"
    assert geotheory("count", "permutation", "-N", 8, "-R", 2, "--connected", "--up-to-isomorphism") == "34470\n"
    assert json.loads(geotheory("count", "simple-matching", "-N", 6, "-R", 3, "--json"))["count"] == "480"
    assert "did you mean simple" in geotheory("count", "simpl", "-N", 5, "-R", 2, status=2)


def test_bounds(tmp_path):
    shown = geotheory("bound", "fixed-unembedding", "-N", 4096, "-R", 16, "-k", 2)
    assert "3,071.2325" in shown
    assert "unembedding that does not depend" in shown
    assert "loggamma" in shown
    found = json.loads(geotheory("bound", "real-dimension", "-N", 4096, "-R", 16, "--width", 192, "--json"))
    assert (found["value"], found["unit"], found["theorem"]) == (6.0, "dimensions", "B6")
    for theorem in ("free-unembedding", "chain-of-thought", "frozen-embedding", "width"):
        assert json.loads(geotheory("bound", theorem, "-N", 500, "-R", 3, "-k", 2, "--json"))["value"] > 0
    for theorem in ("fixed-unembedding", "free-unembedding"):
        file = tmp_path / f"{theorem}.png"
        assert "figure:" in geotheory("bound", theorem, "-N", 500, "-R", 3, "-k", 2, "--curve", "--plot", file)
        assert file.stat().st_size > 10_000
    assert "needs --width" in geotheory("bound", "real-dimension", "-N", 50, "-R", 2, status=2)
    assert "has no curve" in geotheory("bound", "width", "-N", 50, "-R", 2, "--curve", status=2)
    assert "add --curve" in geotheory("bound", "width", "-N", 50, "-R", 2, "--plot", "x.png", status=2)


def test_verify_and_its_json():
    shown = geotheory("verify", "single-hop", "-N", 300, "-R", 5)
    assert "1,500 of 1,500 queries right" in shown
    assert "proved: margin 2" in shown
    report = json.loads(geotheory("verify", "direct", "-N", 30, "-R", 2, "-k", 2, "--residual", "--json"))
    assert report["verification"]["correct"] == report["verification"]["queries"] == 120
    assert report["certificate"]["holds"]
    assert report["size"]["bits_in"] == 20


@pytest.mark.parametrize(
    "construction",
    [
        ("direct",),
        ("chain-of-thought",),
        ("chain-of-thought", "--hops-per-step", 2),
        ("key-value", "--residual"),
        ("meet-in-middle", "--forward", 0),
        ("meet-in-middle", "--hidden-layers", 1, "--attention", "hard"),
    ],
)
def test_every_construction_of_several_hops(construction):
    assert "1,728 of 1,728" in geotheory("verify", *construction, "-N", 12, "-R", 12, "-k", 2)


def test_proving_beyond_memory():
    shown = geotheory("prove", "direct", "-N", 10**9, "-R", 16, "-k", 5)
    assert "direct: proved" in shown
    report = json.loads(
        geotheory("prove", "meet-in-middle", "-N", 10**9, "-R", 16, "-k", 5, "--attention", "hard", "--json")
    )
    assert (report["holds"], report["margin"]) == (True, 2.0)
    assert "nothing to prove" in geotheory("prove", "associative", "-N", 5, "-R", 1, status=2)


def test_the_baseline_fails_with_status_one():
    shown = geotheory("verify", "associative", "-N", 200, "-R", 4, "-d", 8, status=1)
    assert "wrong:" in shown


@pytest.mark.parametrize(("file", "queries"), [("elements", 354), ("pitch_classes", None), ("family", None)])
def test_examples(file, queries):
    report = json.loads(geotheory("verify", "single-hop", "--facts", EXAMPLES / f"{file}.csv", "--json"))
    assert report["certificate"]["holds"]
    assert report["verification"]["accuracy"] == 1
    if queries:
        assert report["verification"]["queries"] == queries


def test_iron(tmp_path):
    geotheory("build", "single-hop", "--facts", EXAMPLES / "elements.csv", "--out", tmp_path)
    assert geotheory("ask", tmp_path, "Iron", "symbol") == "Fe\n"
    assert geotheory("ask", tmp_path, "Iron", "atomic number") == "26\n"
    assert geotheory("ask", tmp_path, "Cerium", "group", status=1) == "no answer: the model abstains\n"
    assert "did you mean Iron" in geotheory("ask", tmp_path, "Irom", "symbol", status=2)
    assert "unknown relation 'simbol'; did you mean symbol?" in geotheory("ask", tmp_path, "Iron", "simbol", status=2)
    assert "answers exactly 1" in geotheory("ask", tmp_path, "Iron", "symbol", "symbol", status=2)


def test_pitches_compose(tmp_path):
    geotheory("build", "meet-in-middle", "--facts", EXAMPLES / "pitch_classes.csv", "-k", 2, "--out", tmp_path)
    third, fifth = "major third", "minor third"
    assert geotheory("ask", tmp_path, "C", third, fifth) == "G\n"


@pytest.mark.parametrize("construction", ["direct", "chain-of-thought", "key-value"])
def test_the_mother_of_the_wife(tmp_path, construction):
    from geotheory import FactTable

    facts = FactTable.from_csv(EXAMPLES / "family.csv")
    wife, mother = facts.relation_index("wife"), facts.relation_index("mother")
    answers = facts.compose([[wife, mother]])[0]
    geotheory("build", construction, "--facts", EXAMPLES / "family.csv", "-k", 2, "--out", tmp_path)
    x = int((answers >= 0).nonzero()[0])
    asked = json.loads(geotheory("ask", tmp_path, facts.subjects[x], "wife", "mother", "--json"))
    assert asked["answer"] == facts.attributes[answers[x]]
    if construction == "chain-of-thought":
        assert asked["chain"][0] == facts.attributes[facts.table[wife, x]]
    x = int((answers < 0).nonzero()[0])
    assert geotheory("ask", tmp_path, facts.subjects[x], "wife", "mother", status=1).startswith("no answer")


def test_help_has_examples():
    for command in ("size", "verify", "prove", "build", "ask", "check", "count", "bound"):
        assert f"geotheory {command} " in geotheory(command, "--help")
    assert "verify" in geotheory("--help")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("size", "-N", 0, "-R", 3), "entities must be at least 1, not 0"),
        (("verify", "single-hop"), "give -N and -R for random bijections, or --facts FILE"),
        (("verify", "singlehop", "-N", 3, "-R", 1), "did you mean single-hop?"),
        (("verify", "single-hop", "-N", 3, "-R", 1, "-k", 2), "answers one hop, not 2"),
        (("verify", "direct", "-N", 3, "-R", 1, "--forward", 1), "direct has no option --forward"),
        (("verify", "single-hop", "-N", 3, "-R", 1, "--bits", 0), "bits must be at least 1"),
        (("verify", "single-hop", "--facts", "nowhere.csv"), "nowhere.csv"),
        (("verify", "single-hop", "--facts", "a.csv", "-N", 3), "either --facts FILE or -N and -R"),
        (("verify", "single-hop", "-N", 3, "-R", 1, "--device", "abacus"), "device 'abacus' is not available"),
        (("verify", "associative", "-N", 3, "-R", 1), "needs the dimension"),
        (("verify", "single-hop", "-N", 10**9, "-R", 10**3), "are free"),
        (("verify", "direct", "-N", 10, "-R", 10, "-k", 1000), "needs d = 10^1000"),
        (("verify", "direct", "-N", 10, "-R", 2, "-k", 100000), "GB are free"),
        (("verify", "direct", "-N", 10**6, "-R", 1000, "-k", 3), "GB are free"),
        (("verify", "associative", "-N", 5, "-R", 2, "-d", 99999999999999), "GB are free"),
        (("verify", "single-hop", "--facts", "x" * 300), "File name too long"),
        (("ask", "nowhere", "Iron", "symbol"), "no model at nowhere"),
        (("check", "--only", "Z9"), "unknown claim 'Z9'"),
    ],
)
def test_bad_input_is_said_in_one_line(arguments, message):
    error = geotheory(*arguments, status=2)
    assert message in error
    assert error.startswith("error: ")
    assert error.count("\n") == 1


def test_bad_facts_write_nothing(tmp_path):
    file = tmp_path / "facts.csv"
    file.write_text("subject,relation,attribute\nAnn,mother,Cy\nAnn,mother,Di\n")
    error = geotheory("build", "single-hop", "--facts", file, "--out", tmp_path / "model", status=2)
    assert "line 2" in error
    assert "line 3" in error
    assert not (tmp_path / "model").exists()


def test_other_column_names(tmp_path):
    file = tmp_path / "facts.tsv"
    file.write_text("who\tlink\twhom\nAnn\tmother\tCy\n")
    shown = geotheory("verify", "single-hop", "--facts", file, "--columns", "who,link,whom")
    assert "1 of 1 queries right" in shown
    assert "takes three names" in geotheory("verify", "single-hop", "--facts", file, "--columns", "who,link", status=2)


def test_check_of_one_claim(tmp_path):
    shown = geotheory("check", "--only", "S3", "--out", tmp_path)
    assert shown.startswith("holds")
    report = json.loads((tmp_path / "report.json").read_text())
    assert [claim["id"] for claim in report["claims"]] == ["S3"]
    assert report["claims"][0]["figures"]["weights that differ"] == 0


def test_size_loads_no_torch_and_starts_quickly():
    code = (
        "import sys\nfrom geotheory.cli import app\n"
        "app(['size', '-N', '4096', '-R', '16'], standalone_mode=False)\n"
        "print([m for m in ('torch', 'sympy', 'networkx') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")
