"""Fact tables: which attribute each subject has under each relation (THEORY 1)."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import networkx as nx
import psutil
import torch
from jaxtyping import Int
from torch import Tensor

from geotheory.csv_files import read_triples, write_triples
from geotheory.errors import FactsError, InvalidArgument, NotBijective, NotComposable, TooLarge, positive_integer
from geotheory.graph_facts import read_graph, write_graph
from geotheory.names import Numbered, checked, position, same_names
from geotheory.triples import Facts, by_first_appearance, checked_rows, gather

__all__ = ["FactTable"]


@dataclass(frozen=True, init=False, eq=False, repr=False)
class FactTable:
    """`g : [R] x [N] -> [A]`: the attribute `g_r(x)` of subject `x` under relation `r`, with names.

    A table is *composable* if its attributes are its subjects (then both are called *entities*): only then does a query of
    several hops make sense. It is *bijective* if moreover every relation is a permutation of the entities, the paper's setting.

    Parameters
    ----------
    table
        `[R, N]`, integers: `table[r, x]` is the index of the attribute, -1 where the fact is missing. It is copied.
    subjects, relations
        Names in index order. Default: `x0, x1, ...` and `r0, r1, ...`.
    attributes
        Names in index order; they may differ from the subjects in number and name. Default: the subjects themselves.

    Raises
    ------
    InvalidArgument
        The table is not a two-dimensional tensor of integers, is empty, or holds an index below -1 or beyond the attributes.
    FactsError
        Two things have one name, or a name is empty, no string, or contains NUL.

    Examples
    --------
    >>> facts = FactTable(torch.tensor([[1, 0, 2], [1, 2, 0]]), subjects=["Ann", "Bo", "Cy"], relations=["spouse", "next"])
    >>> facts
    FactTable(3 entities, 2 relations)
    >>> facts.attributes[facts.table[facts.relation_index("next"), facts.subject_index("Bo")]]
    'Cy'
    >>> facts.is_bijective
    True
    """

    table: Int[Tensor, "R N"]
    subjects: Sequence[str]
    relations: Sequence[str]
    attributes: Sequence[str]

    def __init__(
        self,
        table: Tensor,  # no shape: other tensors get an error of their own
        subjects: Sequence[str] | None = None,
        relations: Sequence[str] | None = None,
        attributes: Sequence[str] | None = None,
    ) -> None:
        if (
            not isinstance(table, Tensor)
            or table.is_floating_point()
            or table.is_complex()
            or table.dtype == torch.bool
        ):
            found = f"dtype {table.dtype}" if isinstance(table, Tensor) else type(table).__name__
            raise InvalidArgument(f"the table must be a tensor of integers, not {found}")
        if table.ndim != 2 or 0 in table.shape:
            raise InvalidArgument(
                f"the table must have shape [relations, subjects], at least one of each; not {list(table.shape)}"
            )
        R, N = table.shape
        # A copy: a caller who goes on writing into the tensor must not change the facts.
        table = table.to("cpu", torch.int64, copy=True)
        subjects = Numbered("x", N) if subjects is None else checked("subjects", subjects)
        relations = Numbered("r", R) if relations is None else checked("relations", relations)
        attributes = subjects if attributes is None else checked("attributes", attributes)
        if same_names(subjects, attributes):
            attributes = subjects  # `is_composable` is then a comparison of objects
        for what, names, count in (("subject", subjects, N), ("relation", relations, R)):
            if len(names) != count:
                raise InvalidArgument(f"{len(names)} {what} names for a table with {count} {what}s")
        least, most = int(table.min()), int(table.max())
        if least < -1 or most >= len(attributes):
            wrong = least if least < -1 else most
            r, x = (table == wrong).nonzero()[0].tolist()
            raise InvalidArgument(
                f"the table gives {subjects[x]!r} attribute {wrong} under {relations[r]!r}; "
                f"attributes are 0..{len(attributes) - 1}, and -1 marks a missing fact"
            )
        for field, value in (
            ("table", table),
            ("subjects", subjects),
            ("relations", relations),
            ("attributes", attributes),
        ):
            object.__setattr__(self, field, value)

    # -- random tables -------------------------------------------------------------------------------------------------

    @classmethod
    def random_bijections(cls, entities: int, relations: int, seed: int = 0) -> "FactTable":
        """`relations` independent uniformly random permutations of `entities`, named `r0, r1, ...` and `x0, x1, ...`.

        Raises
        ------
        InvalidArgument
            A size below 1, or a seed outside 0..2**64 - 1.
        TooLarge
            The table would not fit into memory (before it is allocated).

        Examples
        --------
        >>> facts = FactTable.random_bijections(entities=5, relations=2, seed=0)
        >>> facts.table.sort(1).values.tolist()
        [[0, 1, 2, 3, 4], [0, 1, 2, 3, 4]]
        """
        N, R = positive_integer("entities", entities), positive_integer("relations", relations)
        _ensure_fits(R, N)
        generator = _generator(seed)
        table = torch.empty(R, N, dtype=torch.int64)
        for row in table:
            torch.randperm(N, generator=generator, out=row)
        return cls(table)

    @classmethod
    def random_functions(
        cls, subjects: int, relations: int, attributes: int | None = None, missing: float = 0.0, seed: int = 0
    ) -> "FactTable":
        """`relations` independent uniformly random functions, in general many-to-one.

        Parameters
        ----------
        subjects, relations
            How many.
        attributes
            How many, named `a0, a1, ...`; None means that the attributes are the subjects, so that relations compose.
        missing
            The probability with which each fact is left out, independently.
        seed
            The same seed gives the same table.

        Raises
        ------
        InvalidArgument
            A size below 1, a probability outside [0, 1], or a seed outside 0..2**64 - 1.
        TooLarge
            The table would not fit into memory (before it is allocated).

        Examples
        --------
        >>> FactTable.random_functions(subjects=100, relations=3, attributes=7)
        FactTable(100 subjects, 3 relations, 7 attributes)
        """
        N, R = positive_integer("subjects", subjects), positive_integer("relations", relations)
        A = N if attributes is None else positive_integer("attributes", attributes)
        if not 0 <= missing <= 1:
            raise InvalidArgument(f"missing is a probability and must lie in [0, 1], not {missing!r}")
        _ensure_fits(R, N)
        generator = _generator(seed)
        table = torch.randint(A, (R, N), generator=generator)
        if missing:
            # Row by row: the random numbers of all rows at once would take as much memory as the table.
            for row in table:
                row[torch.rand(N, generator=generator, dtype=torch.float64) < missing] = -1
        return cls(table, attributes=None if attributes is None else Numbered("a", A))

    # -- triples, files and graphs -------------------------------------------------------------------------------------

    @classmethod
    def from_triples(cls, rows: Iterable[Sequence[object]], *, shared: bool | None = None) -> "FactTable":
        """The facts `(subject, relation, attribute)`, one a row; names are numbered in order of first appearance.

        Parameters
        ----------
        rows
            Triples of strings. A fact may be repeated.
        shared
            Whether subjects and attributes are one set of entities, so that relations compose. None: yes exactly if some
            attribute is also a subject.

        Raises
        ------
        FactsError
            A subject has two attributes under one relation (the message names both rows), a row has not three cells, a name
            is empty, or there are no rows.
        NotAName
            A name is no string; also a `TypeError`.
        TooLarge
            The table of all relations and subjects would not fit into memory (before it is allocated).

        Examples
        --------
        >>> facts = FactTable.from_triples([("Ann", "wife", "Bo"), ("Bo", "mother", "Cy")])
        >>> facts.subjects, facts.relations
        (('Ann', 'Bo', 'Cy'), ('wife', 'mother'))
        >>> facts.compose([[0, 1]])
        tensor([[ 2, -1, -1]])
        """
        return cls._from_facts(gather(checked_rows(rows), "row"), shared, "there are no facts")

    @classmethod
    def from_csv(
        cls,
        path: str | os.PathLike[str],
        *,
        subject: str = "subject",
        relation: str = "relation",
        attribute: str = "attribute",
        delimiter: str | None = None,
        shared: bool | None = None,
    ) -> "FactTable":
        """The facts in a CSV or TSV file, one a row; names are numbered in order of first appearance.

        The file is UTF-8, with or without byte order mark; cells may be quoted and then hold delimiters and line ends. Rows
        without text are ignored. Names are taken as they are: spaces at their ends belong to them.

        Parameters
        ----------
        path
            The file. Its first row names the columns.
        subject, relation, attribute
            The names of the three columns to read; the file may have others.
        delimiter
            One character. None: a tab if the suffix is .tsv or .tab, otherwise what separates the header into these columns.
        shared
            As in :meth:`from_triples`.

        Raises
        ------
        FactsError
            Each with its line number: a column that is not there or is there twice, a row with too few or too many cells, an
            empty cell, two attributes for one subject and relation (both lines), quotes that do not match, bytes that are not
            UTF-8. Without: no rows, a directory.
        InvalidArgument
            The delimiter is not one character, or two of the columns are the same.
        FileNotFoundError
            There is no such file.
        TooLarge
            The table of all relations and subjects would not fit into memory (before it is allocated).
        """
        path = Path(path)
        facts = gather(read_triples(path, (subject, relation, attribute), delimiter), "line", f"{path}: ")
        return cls._from_facts(facts, shared, f"{path} has a header but no facts")

    def to_csv(self, path: str | os.PathLike[str], *, drop_unmentioned: bool = False) -> None:
        r"""Write the facts as rows under the header ``subject,relation,attribute`` (tabs if the suffix is .tsv or .tab).

        :meth:`from_csv` reads the same facts back, name by name, whatever characters the names contain; give it
        `shared=facts.is_composable` if the names alone do not tell. If the table came from triples, the result is equal to it,
        indices included: rows are so ordered that names first appear in the order of their indices, if any order of rows does
        that. (For most random tables none does; :meth:`to_networkx` always keeps the indices.)

        The file is replaced at the end and at once: a full disk or Ctrl-C leaves the old file as it was.

        Parameters
        ----------
        path
            The file to write.
        drop_unmentioned
            Leave out names that occur in no fact, which rows cannot express.

        Raises
        ------
        FactsError
            Some name occurs in no fact, and `drop_unmentioned` is false. Nothing is written.
        InvalidArgument
            `path` is a directory or a device.
        FileNotFoundError
            The directory does not exist.
        """
        if not drop_unmentioned:
            self._ensure_all_mentioned()
        names = self.subjects, self.relations, self.attributes
        rows = (
            (names[0][x], names[1][r], names[2][a]) for x, r, a in by_first_appearance(self.table, self.is_composable)
        )
        write_triples(Path(path), rows)

    @classmethod
    def from_networkx(cls, graph: nx.Graph, *, shared: bool | None = None) -> "FactTable":
        """The facts of a directed graph: an edge from subject to attribute with the edge attribute `relation`.

        Nodes and relations are named by `str`. Names are numbered in the order that :meth:`to_networkx` left in the graph; any
        others come after them, nodes in the order of the graph and relations in the order of its edges.

        Parameters
        ----------
        graph
            A `MultiDiGraph` or `DiGraph`, from anywhere.
        shared
            Whether all nodes are entities, subjects and attributes alike. False: a node is a subject if edges leave it, an
            attribute if edges enter it (both, as two different things, if both; a subject if none). None: as :meth:`to_networkx`
            noted it, in other graphs true exactly if some node has edges of both kinds.

        Raises
        ------
        FactsError
            The graph is undirected, has no edges, an edge has no `relation`, two nodes or relations have one name, or a
            subject has two attributes under one relation.
        TooLarge
            The table of all relations and subjects would not fit into memory (before it is allocated).

        Examples
        --------
        >>> cycle = nx.cycle_graph(3, create_using=nx.DiGraph)
        >>> nx.set_edge_attributes(cycle, "next", "relation")
        >>> FactTable.from_networkx(cycle).table
        tensor([[1, 2, 0]])
        """
        named = read_graph(graph, shared)
        return cls._from_facts(
            named.facts,
            named.shared,
            "the graph has no edges, so there are no facts",
            named.subjects,
            named.relations,
            named.attributes,
        )

    def to_networkx(self) -> nx.MultiDiGraph:
        """The graph with one edge per fact, from subject to attribute, with the edge attribute (and key) `relation`.

        Nodes are names; a name that is both a subject and an attribute is one node. Edges do not tell the order of names,
        relations without facts, or whether attributes are subjects. So the graph attribute ``graph.graph["geotheory"]`` lists
        the `subjects`, the `relations` and, unless they are the subjects, the `attributes`: :meth:`from_networkx` then returns
        an equal table. The graph may be edited in between. (Delete that attribute before writing GraphML, which has no lists.)

        Examples
        --------
        >>> facts = FactTable.from_triples([("Iron", "symbol", "Fe"), ("Gold", "symbol", "Au")])
        >>> graph = facts.to_networkx()
        >>> list(graph.edges(data="relation"))
        [('Iron', 'Fe', 'symbol'), ('Gold', 'Au', 'symbol')]
        >>> FactTable.from_networkx(graph) == facts
        True
        """
        attributes = None if self.is_composable else self.attributes
        return write_graph(self.triples(), self.subjects, self.relations, attributes)

    @classmethod
    def _from_facts(
        cls,
        facts: Facts,
        shared: bool | None,
        nothing: str,
        subjects: Iterable[str] = (),
        relations: Iterable[str] = (),
        attributes: Iterable[str] = (),
    ) -> "FactTable":
        """The table of `facts`; names in the order given, then in order of first appearance; `nothing` says that there are none."""
        if shared is None:
            shared = not {x for x, _ in facts}.isdisjoint(a for a, _ in facts.values())
        subject_index = dict.fromkeys(subjects, 0)
        relation_index = dict.fromkeys(relations, 0)
        attribute_index = subject_index if shared else dict.fromkeys(attributes, 0)
        for (x, r), (a, _) in facts.items():
            subject_index[x] = relation_index[r] = attribute_index[a] = 0
        if not (subject_index and relation_index and attribute_index):
            raise FactsError(nothing)
        for index in (subject_index, relation_index, attribute_index):
            index.update(zip(index, range(len(index))))
        _ensure_fits(len(relation_index), len(subject_index))
        table = torch.full((len(relation_index), len(subject_index)), -1)
        if facts:
            entries = [(relation_index[r], subject_index[x], attribute_index[a]) for (x, r), (a, _) in facts.items()]
            rs, xs, attributes_ = torch.tensor(entries).T
            table[rs, xs] = attributes_
        return cls(table, tuple(subject_index), tuple(relation_index), tuple(attribute_index))

    def _ensure_all_mentioned(self) -> None:
        known = self.table >= 0
        used = torch.zeros(self.num_attributes, dtype=torch.bool)
        used[self.table[known]] = True
        has_facts = known.any(0)
        roles = {"relation": (self.relations, known.any(1))}
        if self.is_composable:
            roles["entity"] = (self.subjects, has_facts | used)
        else:
            roles |= {"subject": (self.subjects, has_facts), "attribute": (self.attributes, used)}
        for role, (names, mentioned) in roles.items():
            silent = (~mentioned).nonzero().flatten()
            if len(silent):
                raise FactsError(
                    f"no fact mentions the {role} {names[int(silent[0])]!r}, so rows of facts would lose it; "
                    "pass drop_unmentioned=True to leave such names out, or use to_networkx()"
                )

    # -- what holds ----------------------------------------------------------------------------------------------------

    @property
    def num_subjects(self) -> int:
        """`N`."""
        return self.table.shape[1]

    @property
    def num_relations(self) -> int:
        """`R`."""
        return self.table.shape[0]

    @property
    def num_attributes(self) -> int:
        """`A`; equal to `N` if the table is composable."""
        return len(self.attributes)

    @property
    def is_composable(self) -> bool:
        """Whether the attributes are the subjects, in the same order, so that a hop can follow a hop."""
        return self.attributes is self.subjects

    @cached_property
    def missing(self) -> int:
        """How many of the `R N` facts are missing."""
        return int((self.table < 0).sum())

    @property
    def is_complete(self) -> bool:
        """Whether no fact is missing."""
        return self.missing == 0

    @cached_property
    def is_bijective(self) -> bool:
        """Whether every relation is a permutation of the entities: composable, complete and one-to-one."""
        if not (self.is_composable and self.is_complete):
            return False
        # N facts that reach all N entities reach each of them once.
        return all(
            bool(torch.zeros(self.num_subjects, dtype=torch.bool).index_fill_(0, row, True).all()) for row in self.table
        )

    # -- queries -------------------------------------------------------------------------------------------------------

    def compose(self, words: Tensor | Sequence[Sequence[int]]) -> Int[Tensor, "W N"]:
        """The answers to whole words: `T(x, r_1..r_k) = g_{r_k}(... g_{r_1}(x))` for every subject `x`.

        Parameters
        ----------
        words
            `[W, k]` relation indices, one word a row; `words[:, 0]` is applied FIRST. The empty word (`k = 0`) is the identity.

        Returns
        -------
        `[W, N]`, attribute indices; -1 where a fact on the way is missing.

        Raises
        ------
        InvalidArgument
            `words` is no integer matrix, or names a relation that does not exist.
        NotComposable
            `k` is not 1 and attributes are not subjects.

        Examples
        --------
        Who is the mother of the wife of `x`? Wives first, then mothers.

        >>> wife, mother = [1, -1, -1, -1], [3, 2, -1, -1]
        >>> FactTable(torch.tensor([wife, mother])).compose([[0, 1]])
        tensor([[ 2, -1, -1, -1]])
        """
        words = self._checked_words(words)
        if words.shape[1] == 0:
            return torch.arange(self.num_subjects).repeat(words.shape[0], 1)
        answers = self.table[words[:, 0]]
        for relation in words.T[1:]:
            answers = self._forgiving_table[relation[:, None], answers]
        return answers

    def follow(self, subjects: Tensor, words: Tensor | Sequence[Sequence[int]]) -> Int[Tensor, "B k"]:
        """Every entity on the way of single queries: column `i` is the answer to the first `i + 1` hops.

        Parameters
        ----------
        subjects
            `[B]` subject indices.
        words
            `[B, k]` relation indices, one query a row; `words[:, 0]` is applied first.

        Returns
        -------
        `[B, k]`, attribute indices; -1 from the first missing fact on.

        Raises
        ------
        InvalidArgument
            An index out of range, or not as many words as subjects.
        NotComposable
            `k` is not 1 and attributes are not subjects.

        Examples
        --------
        >>> FactTable(torch.tensor([[1, 2, 3, 0]])).follow(torch.tensor([2]), [[0, 0, 0]])
        tensor([[3, 0, 1]])
        """
        words = self._checked_words(words)
        at = _indices("subjects", subjects, self.num_subjects, ndim=1)
        if len(at) != len(words):
            raise InvalidArgument(f"{len(at)} subjects for {len(words)} words")
        chain = torch.empty_like(words)
        for hop, relation in enumerate(words.T):
            at = chain[:, hop] = self._forgiving_table[relation, at]
        return chain

    def inverses(self) -> Int[Tensor, "R N"]:
        """The inverse permutations: `inverses()[r, a]` is the one entity whose attribute under `r` is `a`.

        Raises
        ------
        NotBijective
            Some relation is no permutation; the message names a missing fact or two subjects with one attribute.

        Examples
        --------
        >>> FactTable(torch.tensor([[1, 2, 0]])).inverses()
        tensor([[2, 0, 1]])
        """
        if not self.is_bijective:
            raise NotBijective(self._why_not_bijective())
        return torch.empty_like(self.table).scatter_(
            1, self.table, torch.arange(self.num_subjects).expand_as(self.table)
        )

    def _why_not_bijective(self) -> str:
        if not self.is_composable:
            return "the attributes are not the subjects, so no relation can be a permutation of them"
        for name, row in zip(self.relations, self.table):
            absent = (row < 0).nonzero().flatten().tolist()
            if absent:
                return f"relation {name!r} has no fact about {self.subjects[absent[0]]!r}, so it is no permutation"
            order = row.sort(stable=True)
            twice = (order.values[1:] == order.values[:-1]).nonzero().flatten().tolist()
            if twice:
                one, other = (self.subjects[x] for x in order.indices[twice[0] : twice[0] + 2].tolist())
                return (
                    f"relation {name!r} sends both {one!r} and {other!r} to {self.attributes[order.values[twice[0]]]!r}"
                )
        raise AssertionError("every relation is a permutation")

    @cached_property
    def _forgiving_table(self) -> Int[Tensor, "R M"]:
        # An index of -1 reads the last column: a column of -1 makes a missing fact stay missing. Complete tables need none.
        if self.is_complete:
            return self.table
        return torch.nn.functional.pad(self.table, (0, 1), value=-1)

    def _checked_words(self, words: Tensor | Sequence[Sequence[int]]) -> Int[Tensor, "W k"]:
        words = _indices("words", words, self.num_relations, ndim=2)
        if words.shape[1] != 1 and not self.is_composable:
            raise NotComposable(
                f"a word of {words.shape[1]} relations needs attributes that are subjects, and here they are not; "
                "ask one hop, or read the facts with shared=True"
            )
        return words

    # -- names ---------------------------------------------------------------------------------------------------------

    def subject_index(self, name: str) -> int:
        """The index of a subject; raises `UnknownName` with the nearest names."""
        return position("subject", name, self.subjects, self._numbers["subjects"])

    def relation_index(self, name: str) -> int:
        """The index of a relation; raises `UnknownName` with the nearest names."""
        return position("relation", name, self.relations, self._numbers["relations"])

    def attribute_index(self, name: str) -> int:
        """The index of an attribute; raises `UnknownName` with the nearest names."""
        return position("attribute", name, self.attributes, self._numbers["attributes"])

    @cached_property
    def _numbers(self) -> dict[str, dict[str, int] | None]:
        sequences = {"subjects": self.subjects, "relations": self.relations, "attributes": self.attributes}
        return {
            what: None if isinstance(names, Numbered) else {name: i for i, name in enumerate(names)}
            for what, names in sequences.items()
        }

    def triples(self) -> Iterator[tuple[str, str, str]]:
        """Every fact as `(subject, relation, attribute)` by name, subject by subject; missing facts are left out.

        Examples
        --------
        >>> list(FactTable(torch.tensor([[1, -1], [0, 1]])).triples())
        [('x0', 'r0', 'x1'), ('x0', 'r1', 'x0'), ('x1', 'r1', 'x1')]
        """
        for x, column in enumerate(self.table.T):
            subject = self.subjects[x]
            for relation, a in zip(self.relations, column.tolist()):
                if a >= 0:
                    yield subject, relation, self.attributes[a]

    # -- identity ------------------------------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FactTable):
            return NotImplemented
        return (
            torch.equal(self.table, other.table)
            and same_names(self.subjects, other.subjects)
            and same_names(self.relations, other.relations)
            and same_names(self.attributes, other.attributes)
        )

    def __hash__(self) -> int:
        return hash((self.table.shape, self.num_attributes, *self.table[:, 0].tolist()))

    def __repr__(self) -> str:
        R = _counted(self.num_relations, "relation", "relations")
        if self.is_composable:
            return f"FactTable({_counted(self.num_subjects, 'entity', 'entities')}, {R})"
        N = _counted(self.num_subjects, "subject", "subjects")
        return f"FactTable({N}, {R}, {_counted(self.num_attributes, 'attribute', 'attributes')})"


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def _generator(seed: int) -> torch.Generator:
    number = positive_integer("seed", seed, least=0)
    if number >= 2**64:
        raise InvalidArgument(f"seed must be below 2**64, not {number}")
    return torch.Generator().manual_seed(number)


def _ensure_fits(relations: int, subjects: int) -> None:
    """Raise `TooLarge` if the table does not fit; twice, since `FactTable` copies what it is given."""
    needed, available = 2 * 8 * relations * subjects, psutil.virtual_memory().available
    if needed > available:
        raise TooLarge(
            f"a table of {relations} relations x {subjects} subjects takes {needed / 2**30:,.1f} GiB while it is made; "
            f"{available / 2**30:,.1f} GiB are free"
        )


def _indices(what: str, values: object, count: int, ndim: int) -> Tensor:
    """`values` as an int64 tensor on the CPU with `ndim` dimensions and entries in 0..count-1, or an error naming `what`."""
    try:
        indices = torch.as_tensor(values, device="cpu")
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidArgument(f"{what} must be a rectangular array of indices: {error}") from None
    if indices.ndim != ndim:
        raise InvalidArgument(f"{what} must have {ndim} dimension{'s' * (ndim > 1)}, not shape {list(indices.shape)}")
    # An empty list becomes a float tensor; nothing in it can be wrong.
    if indices.numel() and (indices.is_floating_point() or indices.is_complex() or indices.dtype == torch.bool):
        raise InvalidArgument(f"{what} must be integers, not {indices.dtype}")
    indices = indices.to(torch.int64)
    if indices.numel() and (indices.min() < 0 or indices.max() >= count):
        raise InvalidArgument(f"{what} must hold indices in 0..{count - 1}, not {indices.min()}..{indices.max()}")
    return indices
