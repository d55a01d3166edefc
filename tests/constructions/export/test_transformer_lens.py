"""Exported checkpoints in TransformerLens 4: the activations at named points are the construction's own.

Needs transformer-lens, which `make test` does not install; run it where it is.
"""

import pytest
import torch

import constructions
from constructions.export import to_opt
from geotheory import FactTable

pytestmark = pytest.mark.filterwarnings("default")
bridge = pytest.importorskip("transformer_lens.model_bridge.transformer_bridge")

FACTS = FactTable.random_bijections(entities=12, relations=2)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    construction = constructions.direct(FACTS, 2, residual=True)
    made = to_opt(construction)
    directory = made.save(tmp_path_factory.mktemp("opt"))
    return construction, made, directory


def queries():
    subjects = torch.arange(12).repeat(4)
    words = torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1]]).repeat_interleave(12, 0)
    return subjects, words


@torch.no_grad()
def test_activations_are_the_constructions(built):
    construction, made, directory = built
    model = bridge.TransformerBridge.boot_transformers(str(directory))
    subjects, words = queries()
    tokens = construction.decoding.tokens(subjects, words)
    logits, cache = model.run_with_cache(tokens)
    assert torch.equal(logits[:, -1].argmax(1), FACTS.follow(subjects, words)[:, -1])

    ours = construction.transformer
    block, d = ours.blocks[0], ours.shape.d
    h = ours.embedding[tokens] + ours.position
    u = block.attention(h, last=True)[:, 0] + h[:, -1]
    hidden = torch.relu(u @ block.mlp.weight_in + block.mlp.bias_in)
    half = made.circuit["residual stream"]["mirror"]
    for point, expected in (
        ("blocks.0.hook_resid_pre", h[:, -1]),
        ("blocks.0.hook_resid_mid", u),
        ("blocks.0.ln2.hook_out", u),
        ("blocks.0.hook_resid_post", block.mlp(u) + u),
        ("ln_final.hook_out", block.mlp(u) + u),
    ):
        state = cache[point].reshape(len(tokens), -1, cache[point].shape[-1])[:, -1]
        torch.testing.assert_close(state[:, :d], expected, rtol=0, atol=1e-4)
        torch.testing.assert_close(state[:, half : half + d], -expected, rtol=0, atol=1e-4)
    post = cache["blocks.0.mlp.hook_post"].reshape(len(tokens), -1, hidden.shape[1])[:, -1]
    torch.testing.assert_close(post, hidden, rtol=0, atol=1e-4)
    for head in made.circuit["heads"]:
        position = 0 if head["role"] == "subject" else int(head["role"].split()[1])
        assert float(cache["blocks.0.attn.hook_pattern"][:, head["head"], -1, position].min()) > 0.999


@torch.no_grad()
def test_folding_and_centring_change_no_answer(built):
    construction, _, directory = built
    model = bridge.TransformerBridge.boot_transformers(str(directory))
    subjects, words = queries()
    tokens = construction.decoding.tokens(subjects, words)
    before = model(tokens)[:, -1]
    model.enable_compatibility_mode(disable_warnings=True)
    after = model(tokens)[:, -1]
    # Centring the unembedding moves all logits of a query alike.
    shift = (after - before).mean(1, keepdim=True)
    torch.testing.assert_close(after - shift, before, rtol=1e-4, atol=1e-2)
    assert torch.equal(after.argmax(1), FACTS.follow(subjects, words)[:, -1])
