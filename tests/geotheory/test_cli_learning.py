"""The commands learn and threshold: what they print, write, and refuse."""

import json

import pytest
from typer.testing import CliRunner

from geotheory.cli import app, main

FAST = ["--learning-rate", "0.02", "--evaluate-every", "20", "--steps", "300"]


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_learn_writes_its_result_and_goes_on_from_it(tmp_path):
    out = tmp_path / "learned"
    first = run("learn", "-N", 16, "-R", 2, "-d", 8, "--seeds", 2, "--out", out, *FAST)
    assert first.exit_code == 0, first.output
    assert first.output.count("100.00% right") == 2
    assert {path.name for path in out.iterdir()} == {
        "checkpoint.pt",
        "result.json",
        "seed-0.safetensors",
        "seed-1.safetensors",
    }
    written = json.loads((out / "result.json").read_text())
    again = run("learn", "-N", 16, "-R", 2, "-d", 8, "--seeds", 2, "--out", out, "--json", *FAST)
    assert json.loads(again.output)["runs"] == written["runs"]
    other = run("learn", "-N", 16, "-R", 2, "-d", 9, "--seeds", 2, "--out", out, *FAST)
    assert "d: 8, 9" in str(other.exception)


def test_learn_says_by_its_exit_status_that_facts_are_missing():
    result = run("learn", "-N", 32, "-R", 4, "-d", 1, "--steps", 20, "--evaluate-every", 20)
    assert result.exit_code == 1
    assert "d=1" in result.output


def test_a_study_with_its_figure(tmp_path):
    options = ["--subject-scale", "0.01", "--unembedding-scale", "4", "--study", "--out", tmp_path]
    result = run("learn", "-N", 16, "-R", 2, "-d", 16, *options, *FAST)
    assert result.exit_code == 0, result.output
    assert "zero-shot on new facts" in result.output
    assert (tmp_path / "study.png").stat().st_size > 10_000
    first = json.loads((tmp_path / "result.json").read_text())
    assert first["trained"][0]["transfer"]["chance"] == 1 / 16
    # It goes on from its checkpoints: all is as it was, the seconds included.
    assert {"checkpoint.pt", "checkpoint-frozen.pt"} <= {path.name for path in tmp_path.iterdir()}
    assert run("learn", "-N", 16, "-R", 2, "-d", 16, *options, *FAST).exit_code == 0
    assert json.loads((tmp_path / "result.json").read_text()) == first


def test_threshold_keeps_its_runs_and_fits(tmp_path):
    runs, figure = tmp_path / "runs.jsonl", tmp_path / "figure.png"
    shapes = ["-N", 8, "-N", 16, "-R", 2, "-R", 3]
    options = [*shapes, "--frozen", "none", "--share", 0.99, "--seeds", 1, "--processes", 1, "--out", runs, *FAST]
    first = run("threshold", *options, "--plot", figure)
    assert first.exit_code == 0, first.output
    assert first.output.count("99% right from d=") == 4
    assert "R log2 N" in first.output
    assert figure.stat().st_size > 10_000
    before = runs.read_bytes()
    again = run("threshold", *options, "--json")
    assert runs.read_bytes() == before
    found = json.loads(again.output)
    assert len(found["thresholds"]) == 4
    assert found["thresholds"][0]["construction d"] == 7
    assert "none, 99%" in found["fits"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["learn", "-N", "0", "-R", "2", "-d", "4"], "entities must be at least 1"),
        (["learn", "-N", "4", "-R", "2", "-d", "4", "--frozen", "everything"], "unknown frozen 'everything'"),
        (["learn", "-N", "4", "-R", "1", "-d", "4", "--study"], "two relations at least"),
        (["learn", "-N", "4", "-R", "2", "-d", "4", "--relearn"], "goes with --study"),
        (["threshold", "-N", "4", "-R", "2", "--share", "2"], "share must lie in (0, 1]"),
        (["score-circuit", "nowhere.json", "nowhere.json"], "nowhere.json"),
        (["probe", "nowhere", "--relations", "countries"], "no model that transformers can load"),
        (["check", "--only", "L9"], "unknown claim 'L9'"),
    ],
)
def test_bad_input_is_one_line(arguments, message, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["geotheory", *arguments])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    error = capsys.readouterr().err.strip().splitlines()
    assert message in error[-1]
    assert error[-1].startswith("error: ")
    assert not list(tmp_path.iterdir())
