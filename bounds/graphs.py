"""R-regular edge-coloured graphs as networkx graphs: built, drawn at random, listed, told apart (THEORY 6).

A graph is a `networkx.MultiDiGraph` on the entities `0..N-1`; the edge `x -> g_r(x)` has the attribute `relation = r`. An
undirected colour is its own inverse and so has both directions of an edge, or one loop.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from math import exp
from random import Random

import networkx as nx

from bounds.colours import allowed, listed
from bounds.kinds import Kind, kind_named
from geotheory.errors import InvalidArgument, TooLarge, positive_integer

__all__ = [
    "canonical_form",
    "from_permutations",
    "graphs",
    "is_connected",
    "is_properly_coloured",
    "is_regular",
    "random_graph",
    "tables",
    "to_permutations",
]

Permutations = tuple[tuple[int, ...], ...]

# Listing or drawing more worlds than this would not end.
MOST_WORLDS = 5_000_000


def from_permutations(world: Sequence[Sequence[int]]) -> nx.MultiDiGraph:
    """The graph of `R` permutations of `0..N-1`: an edge `x -> world[r][x]` for every colour `r`.

    Raises
    ------
    InvalidArgument
        A colour is no permutation, or the colours have different lengths.

    Examples
    --------
    >>> sorted(from_permutations([(1, 0), (0, 1)]).edges(data="relation"))
    [(0, 0, 1), (0, 1, 0), (1, 0, 0), (1, 1, 1)]
    """
    if not world or not world[0]:
        raise InvalidArgument("a graph needs at least one colour and one entity")
    N = len(world[0])
    for r, row in enumerate(world):
        if sorted(row) != list(range(N)):
            raise InvalidArgument(f"colour {r} is no permutation of 0..{N - 1}: {list(row)}")
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(range(N))
    graph.add_edges_from((x, y, r, {"relation": r}) for r, row in enumerate(world) for x, y in enumerate(row))
    return graph


def to_permutations(graph: nx.MultiDiGraph) -> Permutations:
    """The permutations of a graph, entities and relations in sorted order; inverse of :func:`from_permutations`.

    Raises
    ------
    InvalidArgument
        The graph is not regular: some entity lacks an edge of some colour, or has two.
    """
    if not is_regular(graph):
        raise InvalidArgument("the graph is not regular: every entity needs one edge of every colour out and one in")
    index = {node: i for i, node in enumerate(_ordered(graph.nodes))}
    colours = {relation: r for r, relation in enumerate(_ordered({r for *_, r in graph.edges(data="relation")}))}
    world = [[0] * len(index) for _ in colours]
    for x, y, relation in graph.edges(data="relation"):
        world[colours[relation]][index[x]] = index[y]
    return tuple(map(tuple, world))


def _ordered(things: Iterable[object]) -> list[object]:
    return sorted(things, key=lambda thing: (str(type(thing)), thing))


def is_regular(graph: nx.MultiDiGraph) -> bool:
    """Whether every entity has exactly one edge of each colour out and exactly one in; each colour is then a permutation."""
    colours = {relation for *_, relation in graph.edges(data="relation")}
    out = Counter((x, relation) for x, _, relation in graph.edges(data="relation"))
    into = Counter((y, relation) for _, y, relation in graph.edges(data="relation"))
    pairs = len(graph) * len(colours)
    return bool(colours) and all(len(c) == pairs and set(c.values()) == {1} for c in (out, into))


def is_properly_coloured(graph: nx.MultiDiGraph) -> bool:
    """Whether no two edges that leave, or that enter, an entity have the same colour."""
    edges = list(graph.edges(data="relation"))
    return all(max(Counter((e[end], e[2]) for e in edges).values(), default=1) == 1 for end in (0, 1))


def is_connected(graph: nx.MultiDiGraph) -> bool:
    """Whether all entities hang together, directions aside (in regular graphs: also along directions)."""
    return nx.is_weakly_connected(graph)  # type: ignore[no-any-return]


def graphs(kind: str, *, entities: int, relations: int, up_to_isomorphism: bool = False) -> Iterator[nx.MultiDiGraph]:
    """Every graph of a kind; up to relabelling the entities (colours kept) one of each class.

    Parameters
    ----------
    kind, entities, relations
        As for :func:`bounds.count`.
    up_to_isomorphism
        Leave out all but the first graph of each class, told apart by :func:`canonical_form`.

    Raises
    ------
    TooLarge
        More than five million worlds would have to be looked at.

    Examples
    --------
    >>> sum(1 for _ in graphs("simple", entities=4, relations=2))
    24
    >>> sum(1 for _ in graphs("permutation", entities=4, relations=2, up_to_isomorphism=True))
    43
    """
    chosen = kind_named(kind)
    N, R = positive_integer("entities", entities), positive_integer("relations", relations)
    seen: set[tuple[object, ...]] = set()
    for world in worlds(chosen, N, R):
        if up_to_isomorphism:
            form = canonical_form(world)
            if form in seen:
                continue
            seen.add(form)
        yield from_permutations(world)


def worlds(kind: Kind, N: int, R: int) -> Iterator[Permutations]:
    """The same graphs as tuples of permutations."""
    each = allowed(kind, N)
    if each**R > MOST_WORLDS:
        raise TooLarge(f"{each:,}^{R} worlds of {N} entities are too many to list; bounds.count counts them")
    colours = list(listed(kind, N))
    if not kind.simple:
        yield from product(colours, repeat=R)
        return

    # Colour by colour, so that a clash ends the branch at once.
    def extend(chosen: Permutations) -> Iterator[Permutations]:
        if len(chosen) == R:
            yield chosen
            return
        for row in colours:
            if all(a != b for other in chosen for a, b in zip(row, other)):
                yield from extend((*chosen, row))

    yield from extend(())


def random_graph(kind: str, *, entities: int, relations: int, seed: int = 0) -> nx.MultiDiGraph:
    """A graph of a kind, exactly uniform among the labelled ones.

    Independent colours are drawn one by one: a permutation by shuffling, a derangement by shuffling again until there is no loop
    (about `e` times), an involution by the recursion on its first entity. For the simple kinds whole tuples of colours are drawn
    until no two clash: uniform because nothing but the whole is rejected, and for many entities accepted with a probability near
    `exp(-R (R - 1) / 2)` (for undirected colours its square root), so that few relations are needed.

    Raises
    ------
    InvalidArgument
        There is no such graph (a matching of an odd number of entities, a simple graph with `R >= N`).
    TooLarge
        A simple graph with so many relations that some million draws would be expected.

    Examples
    --------
    >>> graph = random_graph("simple", entities=12, relations=3, seed=1)
    >>> is_regular(graph), max(len(graph[x]) for x in graph)
    (True, 3)
    """
    chosen = kind_named(kind)
    N, R = positive_integer("entities", entities), positive_integer("relations", relations)
    if chosen.undirected and not chosen.loops and N % 2:
        raise InvalidArgument(f"{N} entities have no perfect matching: their number must be even")
    if not chosen.loops and N == 1:
        raise InvalidArgument("a single entity has no graph without loops")
    if chosen.simple and R >= N:
        raise InvalidArgument(f"{R} disjoint colours without loops need at least {R + 1} entities, not {N}")
    random = Random(seed)
    if not chosen.simple:
        return from_permutations([_draw(chosen, N, random) for _ in range(R)])
    expected = exp(R * (R - 1) / (4 if chosen.undirected else 2))
    if expected > 1_000_000:
        raise TooLarge(f"a uniform simple graph with R = {R} takes about {expected:.1g} draws; take fewer relations")
    while True:
        world = [_draw(chosen, N, random) for _ in range(R)]
        if all(len(set(targets)) == R for targets in zip(*world)):
            return from_permutations(world)


def _draw(kind: Kind, N: int, random: Random) -> list[int]:
    if kind.undirected:
        return _draw_involution(N, kind.loops, random)
    row = list(range(N))
    while True:
        random.shuffle(row)
        if kind.loops or all(x != y for x, y in enumerate(row)):
            return row


def _draw_involution(N: int, loops: bool, random: Random) -> list[int]:
    """Uniform: the first entity left is a loop with probability I(n-1) / I(n), else paired with anyone else."""
    counts = [1, 1]
    for n in range(2, N + 1):
        counts.append(counts[-1] + (n - 1) * counts[-2])
    left, row = list(range(N)), list(range(N))
    random.shuffle(left)
    while left:
        n, x = len(left), left.pop()
        if loops and random.randrange(counts[n]) < counts[n - 1]:
            continue
        y = left.pop(random.randrange(len(left)))
        row[x], row[y] = y, x
    return row


def canonical_form(world: Sequence[Sequence[int]]) -> tuple[object, ...]:
    """The same for two tuples of permutations exactly if relabelling the entities turns one into the other; colours are kept.

    A connected graph is explored breadth first from each root, colours in order; the exploration numbers all entities, and the
    smallest of the `N` numberings is the form: `O(N^2 R)`. A graph is the sorted list of its components' forms.

    Examples
    --------
    >>> canonical_form([(1, 2, 0)]) == canonical_form([(2, 0, 1)]) != canonical_form([(1, 0, 2)])
    True
    """
    N = len(world[0])
    left, forms = set(range(N)), []
    while left:
        root = min(left)
        component = _explore(world, root)[1]
        left -= component.keys()
        forms.append(min(_explore(world, x)[0] for x in component))
    return tuple(sorted(forms, key=lambda form: (len(form), form)))


def _explore(world: Sequence[Sequence[int]], root: int) -> tuple[tuple[int, ...], dict[int, int]]:
    """Targets in the order of exploration, by the numbers that it gives, and the numbers."""
    number, order, form = {root: 0}, [root], []
    for x in order:
        for row in world:
            y = row[x]
            if y not in number:
                # Finitely many steps along a colour lead back, so that following edges forward reaches the whole component.
                number[y] = len(order)
                order.append(y)
            form.append(number[y])
    return tuple(form), number


def tables(kind: str, *, entities: int, relations: int, hops: int, roots: int) -> int:
    """Distinct tables of all answers to `k`-hop queries about the first `M = roots` entities, by brute force.

    What the lower bounds bound: `P + M D >= log2 tables` for every model that answers these queries in every world.

    Raises
    ------
    TooLarge
        More than five million worlds.

    Examples
    --------
    >>> [tables("permutation", entities=4, relations=2, hops=2, roots=M) for M in (1, 2, 3, 4)]
    [148, 456, 458, 458]
    """
    chosen = kind_named(kind)
    N, R = positive_integer("entities", entities), positive_integer("relations", relations)
    k, M = positive_integer("hops", hops), positive_integer("roots", roots)
    if M > N:
        raise InvalidArgument(f"roots = {M} exceeds entities = {N}")
    found = set()
    for world in worlds(chosen, N, R):
        answers: Iterable[int] = range(M)
        for _ in range(k):
            answers = [row[x] for x in answers for row in world]
        found.add(tuple(answers))
    return len(found)
