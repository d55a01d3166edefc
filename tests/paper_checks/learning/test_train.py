"""Training: it learns, it is the gradient descent that it says, it resumes bit for bit, and it fails clearly."""

import pytest
import torch
from torch.nn import functional

from geotheory import FactTable, verify
from geotheory.errors import InvalidArgument, NotAModel, TooLarge, UnknownName
from paper_checks.learning import Setting, train
from paper_checks.learning import stack as stacks
from paper_checks.learning.stack import Stack, cross_entropy
from paper_checks.learning.train import Diverged

SMALL = Setting(entities=32, relations=2, d=8, learning_rate=1e-2, steps=400, evaluate_every=20)


def same(one, other):
    return all(torch.equal(a, b) for a, b in zip(one.state_dict().values(), other.state_dict().values()))


def test_learns_its_facts():
    for run in train(SMALL, [0, 1, 2]):
        assert run.learned
        assert run.steps < 400
        found = verify(run.transformer, run.facts)
        assert (found.accuracy, found.margin) == (run.accuracy, run.margin)
        assert run.curve[0].loss > run.curve[-1].loss
        assert run.to_dict()["setting"]["entities"] == 32
        assert "100.00% right" in str(run)


def test_frozen_control_stays_below_at_the_same_dimension():
    setting = SMALL.but(entities=64, d=3, steps=800)
    trained, frozen = (train(setting.but(frozen=what), [0, 1]) for what in ("none", "subjects"))
    assert min(run.accuracy for run in trained) > max(run.accuracy for run in frozen) + 0.1


@pytest.mark.parametrize(
    ("frozen", "kept"),
    [
        ("none", set()),
        ("subjects", {"subjects"}),
        ("unembedding", {"unembedding", "unembedding_bias"}),
        ("embeddings", {"subjects", "unembedding", "unembedding_bias"}),
    ],
)
def test_only_what_is_frozen_stays(frozen, kept):
    setting = SMALL.but(frozen=frozen, weight_decay=0.1, steps=20)
    before = Stack.initialized(setting, [7])
    after = Stack.of(setting, [train(setting, [7])[0].transformer])
    unchanged = {name for name in before.weights if torch.equal(before.weights[name], after.weights[name])}
    assert unchanged == kept


def test_frozen_decoder_moves_the_subjects_alone():
    model = train(SMALL, [0])[0].transformer
    new = FactTable.random_bijections(32, 2, seed=9)
    run = train(SMALL.but(frozen="decoder"), [0], facts=[new], initial=[model])[0]
    assert run.accuracy > 0.3  # chance: 0.03
    for name, weight in run.transformer.named_parameters():
        if name != "embedding":
            assert torch.equal(weight, dict(model.named_parameters())[name])
    assert torch.equal(run.transformer.embedding[32:], model.embedding[32:])


def test_gradients_are_those_of_the_plain_forward_pass(monkeypatch):
    monkeypatch.setattr(stacks, "TILE", 500)  # several tiles, the last one smaller
    setting = SMALL.but(d=6, dtype="float64")
    stack = Stack.initialized(setting, [3, 4])
    tokens = torch.stack([torch.randint(0, 32, (2, 50)), torch.randint(32, 34, (2, 50))], 2)
    answers = torch.randint(0, 32, (2, 50, 1))
    losses = stack.losses(tokens, answers)
    (2 * losses[0] + losses[1]).backward()
    for place, factor in ((0, 2), (1, 1)):
        model = stack.model(place)
        loss = functional.cross_entropy(model(tokens[place]), answers[place, :, 0])
        assert loss.item() == pytest.approx(losses[place].item(), rel=1e-12)
        (factor * loss).backward()
        expected = {name: weight.grad for name, weight in model.named_parameters()}
        embedding = torch.cat([stack.weights["subjects"].grad[place], stack.weights["others"].grad[place]])
        torch.testing.assert_close(embedding, expected.pop("embedding"))
        for name, gradient in expected.items():
            torch.testing.assert_close(stack.weights[name].grad[place], gradient)


def test_tiles_do_not_change_the_loss(monkeypatch):
    generator = torch.Generator().manual_seed(0)
    states, unembedding = (
        torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True)
        for shape in ((3, 41, 5), (3, 5, 17))
    )
    bias, answers = torch.zeros(3, 17, dtype=torch.float64), torch.randint(17, (3, 41), generator=generator)
    for tile in (1, 100, 10**6):
        monkeypatch.setattr(stacks, "TILE", tile)
        assert torch.autograd.gradcheck(
            lambda h, U: cross_entropy(h, U, bias, answers), (states, unembedding), fast_mode=True
        )


def test_seeds_do_not_depend_on_their_company():
    together = {run.seed: run for run in train(SMALL, [0, 1, 2])}
    alone = train(SMALL, [1])[0]
    assert together[1].steps == alone.steps
    assert together[1].accuracy == alone.accuracy
    for a, b in zip(together[1].transformer.parameters(), alone.transformer.parameters()):
        torch.testing.assert_close(a, b, rtol=1e-2, atol=1e-2)  # the kernels for one and for many round differently


def test_same_seed_same_numbers():
    one, other = (train(SMALL.but(batch=16), [5])[0] for _ in range(2))
    assert same(one.transformer, other.transformer)
    assert one.curve == other.curve


class Stop(Exception):
    pass


@pytest.mark.parametrize("changes", [{}, {"batch": 24, "weight_decay": 0.1}, {"frozen": "subjects", "stop": False}])
def test_resuming_is_as_if_never_interrupted(tmp_path, changes):
    setting = SMALL.but(d=6, steps=200, **changes)
    whole = train(setting, [0, 1, 2])
    path = tmp_path / "run.checkpoint"
    for stop in (40, 120):

        def interrupt(step, active, points, stop=stop):
            if step >= stop:
                raise KeyboardInterrupt

        try:
            train(setting, [0, 1, 2], checkpoint=path, progress=interrupt)
        except KeyboardInterrupt:
            assert path.exists()
    resumed = train(setting, [0, 1, 2], checkpoint=path)
    for a, b in zip(whole, resumed):
        assert a.curve == b.curve
        assert same(a.transformer, b.transformer)
    # A finished training is not begun again.
    again = train(setting, [0, 1, 2], checkpoint=path, progress=interrupt)
    assert [run.curve for run in again] == [run.curve for run in whole]
    assert [path.name for path in tmp_path.iterdir()] == ["run.checkpoint"]


def test_a_checkpoint_of_another_training_is_refused(tmp_path):
    path = tmp_path / "run.checkpoint"
    train(SMALL, [0], checkpoint=path)
    with pytest.raises(InvalidArgument, match="d: 8, 9; seeds: \\[0\\], \\[1\\]"):
        train(SMALL.but(d=9), [1], checkpoint=path)
    with pytest.raises(InvalidArgument, match="the facts"):
        train(SMALL, [0], facts=[FactTable.random_bijections(32, 2, seed=8)], checkpoint=path)
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(NotAModel, match="no checkpoint"):
        train(SMALL, [0], checkpoint=path)


def test_a_full_disk_leaves_the_last_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "run.checkpoint"
    train(SMALL.but(steps=20), [0], checkpoint=path)
    before = path.read_bytes()

    def full(state, file):
        file.write(b"half of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch, "save", full)
    path.rename(tmp_path / "kept")
    with pytest.raises(OSError, match="No space"):
        train(SMALL.but(steps=20), [0], checkpoint=path)
    assert not path.exists()
    assert [p.name for p in tmp_path.iterdir()] == ["kept"]
    assert (tmp_path / "kept").read_bytes() == before


def test_divergence_is_named_and_the_others_go_on():
    # One seed is given NaN weights; the other goes on to the end.
    good, bad = Stack.initialized(SMALL, [0, 1]).model(0), Stack.initialized(SMALL, [0, 1]).model(1)
    with torch.no_grad():
        bad.unembedding[0, 0] = float("nan")
    one, other = train(SMALL, [0, 1], initial=[good, bad])
    assert one.learned
    assert one.diverged_at is None
    assert other.diverged_at == 0
    assert "diverged at step 0" in str(other)
    with pytest.raises(Diverged, match=r"step 0.*learning_rate"):
        train(SMALL, [1], initial=[bad])


def test_several_hops():
    direct = Setting(entities=12, relations=2, d=16, hops=2, learning_rate=5e-3, steps=1200, evaluate_every=50)
    run = train(direct, [0])[0]
    assert run.accuracy > 0.3  # chance: 0.03
    chain = direct.but(chain_of_thought=True)
    run = train(chain, [0])[0]
    assert run.accuracy > 0.3  # chance: 0.03
    # Evaluated on its own emissions, by the same decoding as a construction.
    assert verify(run).accuracy == run.accuracy
    assert verify(run, hops=1).accuracy > 0.5


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"d": 0}, InvalidArgument, "d must be at least 1"),
        ({"width": 0}, InvalidArgument, "width must be at least 1"),
        ({"frozen": "subject"}, UnknownName, "did you mean subjects"),
        ({"schedule": "cosin"}, UnknownName, "did you mean cosine"),
        ({"learning_rate": 0.0}, InvalidArgument, "learning_rate must be above 0"),
        ({"weight_decay": 1e6}, InvalidArgument, "weight_decay"),
        ({"hops": 2, "attention": "uniform"}, InvalidArgument, "order"),
        ({"hops": 60}, TooLarge, "queries to train on"),
    ],
)
def test_bad_settings(changes, error, message):
    with pytest.raises(error, match=message):
        SMALL.but(**changes)


def test_bad_seeds_and_facts():
    with pytest.raises(InvalidArgument, match="seeds"):
        train(SMALL, [])
    with pytest.raises(InvalidArgument, match="different"):
        train(SMALL, [1, 1])
    with pytest.raises(InvalidArgument, match="1 facts for 2 seeds"):
        train(SMALL, [0, 1], facts=[FactTable.random_bijections(32, 2)])
    with pytest.raises(InvalidArgument, match="does not fit"):
        train(SMALL, [0], facts=[FactTable.random_bijections(33, 2)])


def test_a_device_that_is_not_there():
    missing = "cuda" if not torch.cuda.is_available() else "cuda:99"
    with pytest.raises(InvalidArgument, match="not available here"):
        train(SMALL, [0], device=missing)
    with pytest.raises(InvalidArgument, match=r"below 2\^63"):
        train(SMALL, [2**63])


@pytest.mark.parametrize("schedule", ["cosine", "linear", "constant"])
def test_schedules(schedule):
    setting = SMALL.but(schedule=schedule, warmup=10, steps=100)
    rates = [setting.rate(step) for step in range(100)]
    assert rates[:10] == sorted(rates[:10])
    assert max(rates) == pytest.approx(setting.learning_rate)
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert rates[-1] == setting.learning_rate if schedule == "constant" else rates[-1] < setting.learning_rate / 20


def test_smallest_worlds():
    run = train(Setting(entities=1, relations=1, d=1, width=1, steps=5), [0])[0]
    assert run.accuracy == 1
