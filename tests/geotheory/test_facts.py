"""FactTable: what holds of a table, composition, random tables, triples and names."""

import copy
import pickle
from collections import namedtuple
from collections.abc import Sequence
from dataclasses import FrozenInstanceError
from itertools import product

import psutil
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from geotheory import FactTable
from geotheory.errors import (
    FactsError,
    GeotheoryError,
    InvalidArgument,
    NotBijective,
    NotComposable,
    TooLarge,
    UnknownName,
)
from geotheory.names import Numbered


@st.composite
def tables(draw: st.DrawFn, bijective: bool = False, composable: bool = True) -> FactTable:
    N, R = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    if bijective:
        rows = [draw(st.permutations(range(N))) for _ in range(R)]
        return FactTable(torch.tensor(rows))
    A = N if composable else draw(st.integers(1, 6))
    rows = [draw(st.lists(st.integers(-1, A - 1), min_size=N, max_size=N)) for _ in range(R)]
    return FactTable(torch.tensor(rows), attributes=None if composable else [f"a{i}" for i in range(A)])


def words(facts: FactTable, length: int) -> torch.Tensor:
    return torch.tensor(list(product(range(facts.num_relations), repeat=length))).reshape(-1, length)


def walk(facts: FactTable, x: int, word: Sequence[int]) -> int:
    """Composition as the definition has it, one step at a time."""
    at = x
    for r in word:
        if at == -1:
            return -1
        at = facts.table.tolist()[r][at]
    return at


# Family and friends: a table small enough to check by eye.
CHAIN = [("Ann", "wife", "Bo"), ("Bo", "mother", "Cy"), ("Cy", "mother", "Di")]


class TestTable:
    def test_a_table_by_hand(self) -> None:
        facts = FactTable(
            torch.tensor([[0, 1], [2, -1]]), ["Iron", "Gold"], ["symbol", "group"], ["Fe", "Au", "group 8"]
        )
        assert (facts.num_subjects, facts.num_relations, facts.num_attributes) == (2, 2, 3)
        assert facts.table.dtype == torch.int64
        assert (facts.missing, facts.is_complete, facts.is_composable, facts.is_bijective) == (1, False, False, False)
        assert list(facts.triples()) == [
            ("Iron", "symbol", "Fe"),
            ("Iron", "group", "group 8"),
            ("Gold", "symbol", "Au"),
        ]
        assert repr(facts) == "FactTable(2 subjects, 2 relations, 3 attributes)"

    def test_repr_of_one(self) -> None:
        assert repr(FactTable(torch.zeros(1, 1, dtype=torch.int64))) == "FactTable(1 entity, 1 relation)"

    def test_smaller_integer_types_become_int64(self) -> None:
        assert FactTable(torch.zeros(1, 2, dtype=torch.int8)).table.dtype == torch.int64

    def test_the_tensor_is_copied(self) -> None:
        mine = torch.tensor([[0, 1]])
        facts = FactTable(mine)
        mine[0, 0] = 1
        assert facts.table.tolist() == [[0, 1]]

    def test_the_names_are_copied(self) -> None:
        mine = ["Ann", "Bo"]
        facts = FactTable(torch.tensor([[0, 1]]), mine)
        mine[0] = "Cy"
        assert facts.subjects == ("Ann", "Bo")
        assert facts.subject_index("Ann") == 0

    def test_fields_cannot_be_set(self) -> None:
        with pytest.raises(FrozenInstanceError):
            FactTable(torch.tensor([[0]])).table = torch.tensor([[-1]])  # type: ignore[misc]

    @pytest.mark.parametrize(
        ("table", "message"),
        [
            (torch.tensor([[0.0]]), r"integers, not dtype torch.float32"),
            (torch.tensor([[True]]), r"integers, not dtype torch.bool"),
            (torch.tensor([0, 1]), r"shape \[relations, subjects\].* not \[2\]"),
            (torch.zeros(0, 3, dtype=torch.int64), r"at least one of each; not \[0, 3\]"),
            (torch.zeros(3, 0, dtype=torch.int64), r"at least one of each; not \[3, 0\]"),
            (torch.tensor([[0, 1], [0, -2]]), r"gives 'x1' attribute -2 under 'r1'; attributes are 0\.\.1, and -1"),
            (torch.tensor([[0, 2], [0, 0]]), r"gives 'x1' attribute 2 under 'r0'; attributes are 0\.\.1"),
        ],
    )
    def test_wrong_tables(self, table: torch.Tensor, message: str) -> None:
        with pytest.raises(InvalidArgument, match=message):
            FactTable(table)

    @pytest.mark.parametrize(
        ("names", "message"),
        [
            ({"subjects": ["a"]}, r"1 subject names for a table with 2 subjects"),
            ({"relations": ["r", "s"]}, r"2 relation names for a table with 1 relations"),
            ({"subjects": ["a", "a"]}, r"subjects\[0\] and subjects\[1\] have the same name 'a'"),
            ({"subjects": ["a", ""]}, r"subjects\[1\] is empty"),
            ({"relations": [" \t"]}, r"relations\[0\] is empty"),
            ({"attributes": ["a", "b\0"]}, r"attributes\[1\] contains a NUL character"),
            ({"attributes": ["a", "\ud800"]}, r"attributes\[1\] cannot be written as UTF-8: '\\ud800'"),
            ({"subjects": "ab"}, r"subjects must be a sequence of names, not the one string 'ab'"),
        ],
    )
    def test_wrong_names(self, names: dict[str, Sequence[str]], message: str) -> None:
        with pytest.raises(GeotheoryError, match=message):
            FactTable(torch.tensor([[0, 1]]), **names)

    def test_equality_compares_table_and_names(self) -> None:
        table = torch.tensor([[0, 1], [1, 0]])
        facts = FactTable(table, ["a", "b"], ["r", "s"])
        assert facts == FactTable(table.clone(), ("a", "b"), ("r", "s"))
        assert hash(facts) == hash(FactTable(table.clone(), ("a", "b"), ("r", "s")))
        others = [
            FactTable(table.flip(0), ["a", "b"], ["r", "s"]),
            FactTable(table, ["b", "a"], ["r", "s"]),
            FactTable(table, ["a", "b"], ["s", "r"]),
            FactTable(table, ["a", "b"], ["r", "s"], ["b", "a"]),
            FactTable(table, ["a", "b"], ["r", "s"], ["a", "b", "c"]),
            FactTable(table[:1], ["a", "b"], ["r"]),
        ]
        for other in others:
            assert facts != other
        assert facts != "a"

    def test_numbered_names_equal_the_same_names_written_out(self) -> None:
        table = torch.tensor([[1, 0]])
        assert FactTable(table) == FactTable(table, ["x0", "x1"], ["r0"])
        assert FactTable(table) != FactTable(table, ["x0", "x2"], ["r0"])

    def test_attributes_that_are_the_subjects_make_it_composable(self) -> None:
        table = torch.tensor([[1, 0]])
        assert FactTable(table, ["a", "b"], attributes=["a", "b"]).is_composable
        assert not FactTable(table, ["a", "b"], attributes=["b", "a"]).is_composable

    @pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda facts: pickle.loads(pickle.dumps(facts))])
    def test_copies_are_equal(self, duplicate: object) -> None:
        for facts in (FactTable.random_bijections(3, 2), FactTable.from_triples([("a", "r", "b")])):
            assert duplicate(facts) == facts  # type: ignore[operator]
            assert duplicate(facts).is_composable == facts.is_composable  # type: ignore[operator]


class TestCompose:
    @given(tables(), st.integers(1, 3))
    def test_agrees_with_walking_step_by_step(self, facts: FactTable, length: int) -> None:
        ws = words(facts, length)
        expected = [[walk(facts, x, w) for x in range(facts.num_subjects)] for w in ws.tolist()]
        assert facts.compose(ws).tolist() == expected

    @given(tables(composable=False))
    def test_one_hop_is_the_table(self, facts: FactTable) -> None:
        assert torch.equal(facts.compose(words(facts, 1)), facts.table)

    @given(tables(), st.data())
    def test_associative(self, facts: FactTable, data: st.DataObject) -> None:
        relation = st.integers(0, facts.num_relations - 1)
        first, then = data.draw(st.lists(relation, max_size=4)), data.draw(st.lists(relation, max_size=4))
        whole, one, other = (facts.compose([w])[0].tolist() for w in (first + then, first, then))
        assert whole == [other[y] if y >= 0 else -1 for y in one]

    def test_the_first_relation_is_applied_first(self) -> None:
        facts = FactTable.from_triples(CHAIN)
        wife, mother = facts.relation_index("wife"), facts.relation_index("mother")
        both = facts.compose(torch.tensor([[wife, mother], [mother, wife]]))
        assert both.tolist() == [[facts.attribute_index("Cy"), -1, -1, -1], [-1, -1, -1, -1]]

    def test_the_empty_word_is_the_identity(self) -> None:
        facts = FactTable.random_bijections(4, 2)
        assert facts.compose([[]]).tolist() == [[0, 1, 2, 3]]
        assert facts.compose(torch.empty(2, 0, dtype=torch.int64)).tolist() == [[0, 1, 2, 3]] * 2

    def test_no_words(self) -> None:
        facts = FactTable.random_bijections(4, 2)
        assert facts.compose(torch.empty(0, 3, dtype=torch.int64)).shape == (0, 4)

    def test_the_answer_is_no_window_onto_the_table(self) -> None:
        facts = FactTable.random_bijections(4, 1)
        before = facts.table.clone()
        facts.compose([[0]]).zero_()
        assert torch.equal(facts.table, before)

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            ([[0, 2]], r"words must hold indices in 0\.\.1, not 0\.\.2"),
            ([[0, -1]], r"words must hold indices in 0\.\.1, not -1\.\.0"),
            (torch.tensor([0, 1]), r"words must have 2 dimensions, not shape \[2\]"),
            ([[0], [0, 1]], r"words must be a rectangular array"),
            (torch.tensor([[0.5]]), r"words must be integers, not torch.float32"),
            (torch.tensor([[True]]), r"words must be integers, not torch.bool"),
        ],
    )
    def test_wrong_words(self, wrong: list[list[int]], message: str) -> None:
        facts = FactTable.random_bijections(4, 2)
        with pytest.raises(InvalidArgument, match=message):
            facts.compose(wrong)

    @pytest.mark.parametrize("word", [[0, 0], []])
    def test_several_hops_need_entities(self, word: list[int]) -> None:
        facts = FactTable.from_triples([("Iron", "symbol", "Fe")])
        with pytest.raises(NotComposable, match=rf"a word of {len(word)} relations needs attributes.*shared=True"):
            facts.compose([word])

    @given(tables(), st.data())
    def test_follow_gives_every_entity_on_the_way(self, facts: FactTable, data: st.DataObject) -> None:
        k = data.draw(st.integers(1, 4))
        relation = st.integers(0, facts.num_relations - 1)
        queries = data.draw(
            st.lists(
                st.tuples(st.integers(0, facts.num_subjects - 1), st.lists(relation, min_size=k, max_size=k)),
                min_size=1,
                max_size=5,
            )
        )
        chain = facts.follow(torch.tensor([x for x, _ in queries]), torch.tensor([w for _, w in queries]))
        assert chain.tolist() == [[walk(facts, x, w[: i + 1]) for i in range(k)] for x, w in queries]

    def test_follow_refuses_what_does_not_fit(self) -> None:
        facts = FactTable.random_bijections(4, 2)
        with pytest.raises(InvalidArgument, match="2 subjects for 1 words"):
            facts.follow(torch.tensor([0, 1]), [[0, 1]])
        with pytest.raises(InvalidArgument, match=r"subjects must hold indices in 0\.\.3, not 4\.\.4"):
            facts.follow(torch.tensor([4]), [[0, 1]])


class TestBijections:
    @given(tables(bijective=True))
    def test_inverses_undo_the_relations(self, facts: FactTable) -> None:
        assert facts.is_bijective
        everyone = torch.arange(facts.num_subjects).expand_as(facts.table)
        inverses = facts.inverses()
        assert torch.equal(inverses.gather(1, facts.table), everyone)
        assert torch.equal(facts.table.gather(1, inverses), everyone)

    @given(tables())
    def test_exactly_the_permutations_have_inverses(self, facts: FactTable) -> None:
        permutations = all(sorted(row) == list(range(facts.num_subjects)) for row in facts.table.tolist())
        assert facts.is_bijective == permutations
        if not permutations:
            with pytest.raises(NotBijective):
                facts.inverses()

    def test_two_subjects_with_one_attribute_are_named(self) -> None:
        rows = [("Ann", "mother", "Cy"), ("Bo", "mother", "Cy"), ("Cy", "mother", "Ann")]
        with pytest.raises(NotBijective, match="relation 'mother' sends both 'Ann' and 'Bo' to 'Cy'"):
            FactTable.from_triples(rows, shared=True).inverses()

    def test_the_missing_fact_is_named(self) -> None:
        with pytest.raises(NotBijective, match="relation 'wife' has no fact about 'Bo'"):
            FactTable.from_triples([("Ann", "wife", "Bo")], shared=True).inverses()

    def test_other_attributes_are_no_permutation(self) -> None:
        facts = FactTable(torch.tensor([[0, 1]]), attributes=["a", "b"])
        assert not facts.is_bijective
        with pytest.raises(NotBijective, match="attributes are not the subjects"):
            facts.inverses()


class TestRandom:
    @pytest.mark.parametrize(("entities", "relations"), [(1, 1), (1, 5), (2, 1), (7, 3), (100, 2)])
    def test_bijections(self, entities: int, relations: int) -> None:
        facts = FactTable.random_bijections(entities, relations)
        assert facts.table.shape == (relations, entities)
        assert facts.is_bijective

    def test_the_seed_decides(self) -> None:
        for make in (
            lambda seed: FactTable.random_bijections(100, 3, seed=seed),
            lambda seed: FactTable.random_functions(100, 3, missing=0.3, seed=seed),
        ):
            assert make(5) == make(5)
            assert make(5) != make(6)

    def test_no_global_randomness(self) -> None:
        before = torch.get_rng_state()
        FactTable.random_bijections(10, 2)
        FactTable.random_functions(10, 2, missing=0.5)
        assert torch.equal(torch.get_rng_state(), before)

    def test_every_permutation_occurs(self) -> None:
        seen = {tuple(row) for row in FactTable.random_bijections(3, 200).table.tolist()}
        assert len(seen) == 6

    def test_functions_into_other_attributes(self) -> None:
        facts = FactTable.random_functions(200, 2, attributes=5)
        assert not facts.is_composable
        assert facts.num_attributes == 5
        assert set(facts.table.flatten().tolist()) == {0, 1, 2, 3, 4}
        assert facts.attributes[4] == "a4"

    def test_functions_among_entities(self) -> None:
        facts = FactTable.random_functions(50, 2)
        assert facts.is_composable
        assert facts.is_complete
        assert not facts.is_bijective

    def test_missing_is_a_probability(self) -> None:
        assert FactTable.random_functions(20, 3, missing=1.0).missing == 60
        assert FactTable.random_functions(20, 3, missing=0.0).missing == 0
        # 10,000 facts: five standard deviations are 250.
        assert abs(FactTable.random_functions(2500, 4, missing=0.5).missing - 5000) < 250

    @pytest.mark.parametrize("missing", [-0.1, 1.1, float("nan")])
    def test_no_probability(self, missing: float) -> None:
        with pytest.raises(InvalidArgument, match=r"missing is a probability and must lie in \[0, 1\], not"):
            FactTable.random_functions(3, 1, missing=missing)

    @pytest.mark.parametrize(
        ("sizes", "message"),
        [
            ({"entities": 0, "relations": 1}, "entities must be at least 1, not 0"),
            ({"entities": 1, "relations": -1}, "relations must be at least 1, not -1"),
            ({"entities": 1, "relations": True}, "relations must be a whole number, not True"),
            ({"subjects": 0, "relations": 1}, "subjects must be at least 1, not 0"),
            ({"subjects": 1, "relations": 1, "attributes": 0}, "attributes must be at least 1, not 0"),
            ({"entities": 1, "relations": 1, "seed": -1}, "seed must be at least 0, not -1"),
            ({"entities": 1, "relations": 1, "seed": 2**64}, r"seed must be below 2\*\*64"),
        ],
    )
    def test_wrong_sizes(self, sizes: dict[str, int], message: str) -> None:
        make = FactTable.random_bijections if "entities" in sizes else FactTable.random_functions
        with pytest.raises(InvalidArgument, match=message):
            make(**sizes)

    def test_too_large_before_anything_is_allocated(self) -> None:
        for make in (FactTable.random_bijections, FactTable.random_functions):
            with pytest.raises(TooLarge, match=r"100000 relations x 100000000000 subjects takes [\d,.]+ GiB"):
                make(10**11, 10**5)

    def test_too_large_is_judged_by_free_memory(self, monkeypatch: pytest.MonkeyPatch) -> None:
        Memory = namedtuple("Memory", "available")
        # 10 x 100 facts of 8 bytes, twice.
        monkeypatch.setattr(psutil, "virtual_memory", lambda: Memory(16_000))
        FactTable.random_bijections(100, 10)
        monkeypatch.setattr(psutil, "virtual_memory", lambda: Memory(15_999))
        with pytest.raises(TooLarge):
            FactTable.random_bijections(100, 10)
        with pytest.raises(TooLarge):
            FactTable.from_triples([(f"x{i}", f"r{i}", "a") for i in range(40)])


class TestTriples:
    def test_numbered_in_order_of_first_appearance(self) -> None:
        facts = FactTable.from_triples([("Zoe", "wife", "Ann"), ("Ann", "mother", "Bo")])
        assert facts.subjects == ("Zoe", "Ann", "Bo")
        assert facts.attributes is facts.subjects
        assert facts.relations == ("wife", "mother")
        assert facts.table.tolist() == [[1, -1, -1], [-1, 2, -1]]

    def test_attributes_of_their_own(self) -> None:
        facts = FactTable.from_triples([("Iron", "symbol", "Fe"), ("Gold", "symbol", "Au"), ("Iron", "group", "8")])
        assert facts.subjects == ("Iron", "Gold")
        assert facts.attributes == ("Fe", "Au", "8")
        assert facts.table.tolist() == [[0, 1], [2, -1]]

    def test_shared_is_found_out_or_said(self) -> None:
        rows = [("a", "r", "b")]
        assert not FactTable.from_triples(rows).is_composable
        assert FactTable.from_triples(rows, shared=True).subjects == ("a", "b")
        assert FactTable.from_triples([*rows, ("b", "r", "c")]).is_composable
        separate = FactTable.from_triples([*rows, ("b", "r", "c")], shared=False)
        assert (separate.subjects, separate.attributes) == (("a", "b"), ("b", "c"))
        assert FactTable.from_triples([("a", "r", "a")]).is_bijective

    def test_a_fact_said_twice_is_one_fact(self) -> None:
        assert FactTable.from_triples([*CHAIN, *CHAIN]) == FactTable.from_triples(CHAIN)

    def test_any_iterable_of_sequences(self) -> None:
        assert FactTable.from_triples(list(row) for row in CHAIN) == FactTable.from_triples(CHAIN)

    def test_two_attributes_name_both_rows(self) -> None:
        rows = [("Ann", "mother", "Cy"), ("Bo", "mother", "Cy"), ("Ann", "mother", "Di")]
        with pytest.raises(
            FactsError, match=r"^'Ann' has two attributes under 'mother': 'Cy' \(row 1\) and 'Di' \(row 3\)"
        ):
            FactTable.from_triples(rows)

    @pytest.mark.parametrize(
        ("row", "message"),
        [
            (("a", "", "b"), "row 2: the relation is empty"),
            ((" ", "r", "b"), "row 2: the subject is empty"),
            (("a", "r", "b\0"), "row 2: the attribute contains a NUL character"),
            (("a", "r"), r"row 2 must be a triple \(subject, relation, attribute\); it has 2 cells"),
            (("a", "r", "b", "c"), "row 2 must be a triple .* it has 4 cells"),
            (("a", "r", 8), r"row 2: the attribute must be a string, not 8 \(int\)"),
            ((None, "r", "b"), r"row 2: the subject must be a string, not None \(NoneType\)"),
            ("abc", r"row 2 must be a triple .* not 'abc'"),
        ],
    )
    def test_wrong_rows(self, row: Sequence[object], message: str) -> None:
        with pytest.raises(FactsError, match=message) as caught:
            FactTable.from_triples([("a", "s", "b"), row])
        assert isinstance(caught.value, TypeError) == ("string, not" in message or "'abc'" in message)

    def test_no_rows(self) -> None:
        with pytest.raises(FactsError, match="there are no facts"):
            FactTable.from_triples([])

    @given(tables(composable=False))
    def test_triples_say_the_facts_by_name(self, facts: FactTable) -> None:
        said = list(facts.triples())
        expected = {
            (facts.subjects[x], facts.relations[r], facts.attributes[a])
            for r, row in enumerate(facts.table.tolist())
            for x, a in enumerate(row)
            if a >= 0
        }
        assert set(said) == expected
        assert len(said) == len(expected) == facts.table.numel() - facts.missing


class TestNames:
    def test_indices_invert_names(self) -> None:
        facts = FactTable.from_triples([("Iron", "symbol", "Fe"), ("Gold", "colour", "gold")])
        assert [facts.subject_index(x) for x in facts.subjects] == [0, 1]
        assert [facts.relation_index(x) for x in facts.relations] == [0, 1]
        assert [facts.attribute_index(x) for x in facts.attributes] == [0, 1]

    def test_unknown_names_hint_at_the_nearest(self) -> None:
        facts = FactTable.from_triples(CHAIN)
        with pytest.raises(UnknownName, match=r"^unknown relation 'moter'; did you mean mother\?"):
            facts.relation_index("moter")
        with pytest.raises(UnknownName, match=r"^unknown subject 'ann'; did you mean Ann\?"):
            facts.subject_index("ann")
        with pytest.raises(UnknownName, match=r"^unknown attribute 'Xerxes'; known: Ann, Bo, Cy, Di"):
            facts.attribute_index("Xerxes")

    def test_unknown_numbers_hint_at_the_range(self) -> None:
        facts = FactTable.random_bijections(4096, 2)
        assert facts.subject_index("x4095") == 4095
        for wrong in ("x4096", "x007", "x-1", "y7", "x", "x٣", "x" + "9" * 5000):
            with pytest.raises(UnknownName, match=r"known: x0 to x4095"):
                facts.subject_index(wrong)

    def test_a_million_names_are_not_written_out(self) -> None:
        facts = FactTable.random_bijections(10**6, 1)
        assert isinstance(facts.subjects, Numbered)
        assert facts.subject_index("x999999") == 999_999

    @given(st.integers(0, 12), st.sampled_from(["x", "", "r1", "7"]))
    def test_numbered_names_are_the_sequence_they_stand_for(self, size: int, prefix: str) -> None:
        names, written = Numbered(prefix, size), tuple(f"{prefix}{i}" for i in range(size))
        assert tuple(names) == tuple(reversed(tuple(reversed(names)))) == written
        assert len(names) == size
        assert [names[i] for i in range(-size, size)] == [written[i] for i in range(-size, size)]
        assert names[1:-1] == written[1:-1]
        assert names[::-2] == written[::-2]
        for name in {*written, "x0", "x1", "x01", "r11", "77", "y", ""}:
            assert (name in names) == (name in written)
            assert names.count(name) == written.count(name)
            if name in written:
                assert names.index(name) == written.index(name)
            else:
                with pytest.raises(ValueError, match="is not among the names"):
                    names.index(name)
        with pytest.raises(IndexError):
            names[size]

    def test_index_keeps_to_its_limits(self) -> None:
        names = Numbered("x", 10)
        assert names.index("x5", 5, 6) == names.index("x5", -5) == 5
        for limits in ((6,), (0, 5)):
            with pytest.raises(ValueError, match="'x5' is not among the names"):
                names.index("x5", *limits)
