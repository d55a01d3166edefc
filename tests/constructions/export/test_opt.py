"""Exported checkpoints answer as the constructions do, layer norm changes nothing, and the circuit is the truth."""

import json

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import constructions
from constructions.export import score, to_opt
from geotheory import FactTable
from geotheory.errors import InvalidArgument

FACTS = FactTable.random_bijections(entities=12, relations=3)
HOLES = FactTable(
    torch.where(torch.rand(FACTS.table.shape, generator=torch.Generator().manual_seed(1)) < 0.3, -1, FACTS.table),
    FACTS.subjects,
    FACTS.relations,
)
SPACES = FactTable.from_triples(
    [
        ("New York", "is in", "United States"),
        ("York", "is in", "United Kingdom"),
        ("New York", "twin", "Cairo"),
        ("Cairo", "is in", "Egypt"),
        ("Adam", "is in", "Egypt"),
        ("Ada", "is in", "United States"),
    ]
)

BUILT = {
    "single_hop": constructions.single_hop(FACTS),
    "single_hop residual": constructions.single_hop(FACTS, residual=True),
    "single_hop bits": constructions.single_hop(FACTS, bits=2),
    "direct": constructions.direct(FACTS, 2),
    "direct 3": constructions.direct(FACTS, 3),
    "direct holes": constructions.direct(HOLES, 2),
    "key_value": constructions.key_value(FACTS),
    "key_value 2": constructions.key_value(FACTS, 2),
    "key_value holes": constructions.key_value(HOLES, 2),
    "meet_in_middle": constructions.meet_in_middle(FACTS, 3, 2),
    "meet_in_middle one layer": constructions.meet_in_middle(FACTS, 2, 1, 1),
    "chain_of_thought": constructions.chain_of_thought(FACTS, 3),
    "chain_of_thought j": constructions.chain_of_thought(FACTS, 3, 2),
    "chain_of_thought holes": constructions.chain_of_thought(HOLES, 2),
    "names with spaces": constructions.single_hop(SPACES),
    "one entity": constructions.single_hop(FactTable.random_bijections(entities=1, relations=1)),
    "two entities": constructions.direct(FactTable.random_bijections(entities=2, relations=2), 2),
}


def queries(c):
    N, R, k = c.facts.num_subjects, c.facts.num_relations, c.hops
    index = torch.arange(N * R**k)
    return index % N, torch.stack([index // N // R ** (k - 1 - i) % R for i in range(k)], 1)


@pytest.mark.parametrize("name", BUILT)
def test_a_saved_checkpoint_answers_every_query_as_the_construction_does(name, tmp_path):
    c = BUILT[name]
    made = to_opt(c)
    made.save(tmp_path)
    model, tokenizer = AutoModelForCausalLM.from_pretrained(tmp_path), AutoTokenizer.from_pretrained(tmp_path)
    subjects, words = queries(c)
    texts = []
    for x, word in zip(subjects.tolist(), words.tolist()):
        blanks = c.decoding.steps * c.decoding.hops_per_step - c.hops if c.decoding.hops_per_step else 0
        texts.append(" ".join([c.facts.subjects[x], *(c.facts.relations[r] for r in word), *["<blank>"] * blanks]))
    asked = tokenizer(texts, return_tensors="pt")
    assert torch.equal(asked["input_ids"], c.decoding.tokens(subjects, words))
    answers = c.answer(subjects, words, steps=True)
    generated = model.generate(**asked)[:, asked["input_ids"].shape[1] :]
    assert generated.shape[1] == c.decoding.steps
    for said, chain in zip(generated.tolist(), answers.tolist()):
        for token, attribute in zip(said, chain):
            assert tokenizer.decode([token]) == (c.facts.attributes[attribute] if attribute >= 0 else "<unknown>")
            if attribute < 0:
                break
    assert made.margin >= 1 - 1e-4
    assert json.loads((tmp_path / "circuit.json").read_text())["margin"] == made.margin


@pytest.mark.parametrize("name", ["single_hop", "direct", "key_value 2", "meet_in_middle", "chain_of_thought j"])
def test_layer_norm_is_the_identity_where_answers_are_read(name):
    c = BUILT[name]
    model = to_opt(c).model
    seen = []
    norms = [layer.self_attn_layer_norm for layer in model.model.decoder.layers]
    norms += [layer.final_layer_norm for layer in model.model.decoder.layers] + [model.model.decoder.final_layer_norm]

    def record(module, inputs, output):
        d = output.shape[-1]
        seen.append(
            (inputs[0].reshape(len(tokens), -1, d)[:, -1] - output.reshape(len(tokens), -1, d)[:, -1]).abs().max()
        )

    handles = [norm.register_forward_hook(record) for norm in norms]
    subjects, words = queries(c)
    tokens = c.decoding.tokens(subjects, words)
    with torch.no_grad():
        model(tokens)
        assert len(seen) == len(norms)
        assert max(seen) < 1e-4
        # Planted: another length, and the norms are no longer the identity.
        model.model.decoder.embed_tokens.weight[0] *= 1.1
        seen.clear()
        model(tokens)
        assert max(seen) > 1e-2
    for handle in handles:
        handle.remove()


def test_neurons_do_what_the_circuit_says():
    c = BUILT["direct"]
    made = to_opt(c)
    layer = made.model.model.decoder.layers[0]
    hidden = []
    layer.activation_fn.register_forward_hook(lambda *seen: hidden.append(seen[-1]))
    subjects, words = queries(c)
    with torch.no_grad():
        made.model(c.decoding.tokens(subjects, words))
    active = hidden[0].reshape(len(subjects), -1, layer.fc1.out_features)[:, -1] > 1e-3
    for neuron in made.circuit["neurons"]:
        word = torch.tensor([c.facts.relations.index(r) for r in neuron["word"]])
        mine = (words == word).all(1)
        assert not bool(active[~mine, neuron["neuron"]].any())
        # Open where the answer's code has +1 in this coordinate.
        code = c.code.words(c.facts.follow(subjects[mine], words[mine])[:, -1])[:, neuron["coordinate"]]
        assert torch.equal(active[mine, neuron["neuron"]], code > 0)


def test_heads_read_what_the_circuit_says():
    c = BUILT["direct"]
    made = to_opt(c)
    made.model.set_attn_implementation("eager")
    with torch.no_grad():
        patterns = made.model(c.decoding.tokens(*queries(c)), output_attentions=True).attentions[0][:, :, -1]
    for head in made.circuit["heads"]:
        position = 0 if head["role"] == "subject" else int(head["role"].split()[1])
        assert float(patterns[:, head["head"], position].min()) > 0.999


def test_directions_hold_what_the_circuit_says():
    c = BUILT["chain_of_thought"]
    made = to_opt(c)
    stream = made.circuit["residual stream"]
    rows = made.model.model.decoder.embed_tokens.weight.detach()
    assert rows.shape[1] == stream["dimension"]
    assert torch.equal(rows[:, : stream["mirror"]], -rows[:, stream["mirror"] : 2 * stream["mirror"]])
    blocks = stream["subspaces"]["subject blocks"]
    again = constructions.chain_of_thought(FACTS, 3, residual=True)
    assert torch.equal(
        rows[:12, blocks["start"] : blocks["stop"]], again.transformer.embedding[:12, again.space["subject blocks"]]
    )


def test_scores(tmp_path):
    made = to_opt(BUILT["key_value"])
    made.save(tmp_path)
    truth = made.circuit
    perfect = score(tmp_path, truth)
    assert (perfect.heads, perfect.neurons, perfect.wrong) == ((1.0, 1.0), (1.0, 1.0), ())
    half = {"neurons": truth["neurons"][: len(truth["neurons"]) // 2]}
    assert score(tmp_path, half).neurons == (1.0, 0.5)
    assert score(tmp_path, half).heads == (None, 0.0)
    wrong = [{**neuron, "role": "something else"} for neuron in truth["neurons"]]
    found = score(tmp_path, {"neurons": wrong[:3] + truth["neurons"][:1]})
    assert found.neurons == (0.25, 1 / len(truth["neurons"]))
    assert any("something else" in claim for claim in found.wrong)
    with pytest.raises(InvalidArgument, match="needs layer"):
        score(tmp_path, {"neurons": [{"neuron": 3}]})
    (tmp_path / "claims.json").write_text("[")
    with pytest.raises(InvalidArgument, match="no JSON"):
        score(tmp_path, tmp_path / "claims.json")


def test_what_cannot_be_exported():
    with pytest.raises(InvalidArgument, match="softmax"):
        to_opt(constructions.direct(FACTS, 2, attention="hard"))
    clash = FactTable.from_triples([("a", "b", "a"), ("b", "b", "b")])
    with pytest.raises(InvalidArgument, match="'b' would be two tokens"):
        to_opt(constructions.single_hop(clash))
    special = FactTable.from_triples([("<pad>", "r", "<pad>")])
    with pytest.raises(InvalidArgument, match="meaning of its own"):
        to_opt(constructions.single_hop(special))
    spoiled = constructions.direct(FACTS, 2, residual=True)
    with torch.no_grad():
        spoiled.transformer.embedding[3, 0] *= -1
    with pytest.raises(InvalidArgument, match="leads by"):
        to_opt(spoiled)
    with torch.no_grad():
        spoiled.transformer.blocks[0].mlp.bias_out[:] += 0.5
        spoiled.transformer.blocks[0].attention.heads[0].query *= 0
    with pytest.raises(InvalidArgument, match=r"constant length|leads by"):
        to_opt(spoiled)


def test_the_command(tmp_path):
    from typer.testing import CliRunner

    from geotheory.cli import app

    built, out = tmp_path / "built", tmp_path / "out"
    BUILT["names with spaces"].save(built)
    run = CliRunner().invoke(app, ["export", str(built), "--to", "opt", "--out", str(out)])
    assert run.exit_code == 0, run.output
    assert "OPTForCausalLM" in run.output
    run = CliRunner().invoke(app, ["score-circuit", str(out), str(out / "circuit.json")])
    assert "precision 100.0%, recall 100.0%" in run.output
