"""Models on disk."""

import json

import pytest
import torch
from safetensors.torch import save_file

import constructions
from geotheory import FactTable, verify
from geotheory.errors import CorruptModel, NotAModel
from tests.constructions.variants import variants


@pytest.fixture
def named():
    table = torch.tensor([[1, 2, 0], [0, 2, 1]])
    return FactTable(table, ["Ägir", "Bo, the younger", "慈"], ["wife", "“friend”"])


def test_round_trip(tmp_path, named):
    for name, build in variants(named, 2):
        built = build(named)
        built.save(tmp_path)
        loaded = constructions.load(tmp_path)
        assert loaded.facts == named
        assert (loaded.kind, loaded.size, loaded.decoding, loaded.options) == (
            built.kind, built.size, built.decoding, built.options,
        ), name  # fmt: skip
        for (one, w), (other, v) in zip(
            loaded.transformer.state_dict().items(), built.transformer.state_dict().items()
        ):
            assert one == other
            assert torch.equal(w, v)
        assert verify(loaded).holds
        assert loaded.certificate().holds


def test_state_dict_round_trip(named):
    one, other = constructions.direct(named, 2), constructions.direct(FactTable.random_bijections(3, 2, seed=9), 2)
    other.transformer.load_state_dict(one.transformer.state_dict())
    tokens = torch.tensor([[0, 3, 4], [2, 4, 4]])
    assert torch.equal(one.transformer(tokens), other.transformer(tokens))


def test_attributes_of_their_own_survive(tmp_path):
    facts = FactTable.random_functions(5, 2, 9, missing=0.3)
    file = constructions.single_hop(facts, bits=2, dtype=torch.bfloat16).save(tmp_path / "deep" / "dir")
    loaded = constructions.load(file)
    assert loaded.facts == facts
    assert loaded.transformer.embedding.dtype == torch.bfloat16
    assert verify(loaded).holds


def test_nothing_but_the_model_is_left_behind(tmp_path, named):
    constructions.single_hop(named).save(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["model.safetensors"]


def test_a_failed_write_keeps_the_old_model(tmp_path, named, monkeypatch):
    constructions.single_hop(named).save(tmp_path)
    before = (tmp_path / "model.safetensors").read_bytes()

    def full(tensors, path, metadata):
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("constructions.storage.save_file", full)
    with pytest.raises(OSError, match="No space"):
        constructions.direct(named, 2).save(tmp_path)
    assert (tmp_path / "model.safetensors").read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


def test_what_is_not_a_model(tmp_path, named):
    with pytest.raises(FileNotFoundError, match="geotheory build"):
        constructions.load(tmp_path / "nowhere")
    with pytest.raises(NotAModel, match="holds no"):
        constructions.load(tmp_path)
    text = tmp_path / "text"
    text.write_text("subject,relation,attribute\n")
    with pytest.raises(NotAModel, match="cannot be read"):
        constructions.load(text)
    other = tmp_path / "other.safetensors"
    save_file({"weight": torch.zeros(2)}, other)
    with pytest.raises(NotAModel, match="not a model of geotheory"):
        constructions.load(other)


def test_damage_is_noticed(tmp_path, named):
    file = constructions.single_hop(named).save(tmp_path)
    whole = file.read_bytes()
    for length in (0, 4, 100, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:length])
        with pytest.raises(CorruptModel):
            constructions.load(tmp_path)
    for place in (len(whole) - 1, len(whole) - 200, len(whole) // 2):
        damaged = bytearray(whole)
        damaged[place] ^= 1
        file.write_bytes(damaged)
        with pytest.raises(NotAModel):
            constructions.load(tmp_path)
    file.write_bytes(whole)
    assert constructions.load(tmp_path).facts == named


def test_a_model_of_another_version(tmp_path, named):
    from constructions.storage import FORMAT, _digest

    about = {"kind": "single_hop", "options": {}}
    tensors = {"weight": torch.zeros(1)}
    metadata = {"format": FORMAT, "geotheory": json.dumps(about), "sha256": _digest(tensors)}
    save_file(tensors, tmp_path / "model.safetensors", metadata)
    with pytest.raises(CorruptModel, match="does not describe a model"):
        constructions.load(tmp_path)
