"""Facts as networkx graphs: an edge from subject to attribute, with the relation as edge attribute."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

import networkx as nx

from geotheory.csv_files import Triple
from geotheory.errors import FactsError
from geotheory.names import names_problem
from geotheory.triples import Facts, gather

__all__ = ["GraphFacts", "read_graph", "write_graph"]

NOTE = "geotheory"  # the graph attribute that holds what edges cannot say


class GraphFacts(NamedTuple):
    """What a graph says: the facts, whether subjects and attributes are one set, and the names in order."""

    facts: Facts
    shared: bool
    subjects: list[str]
    relations: list[str]
    attributes: list[str]


def read_graph(graph: nx.Graph, shared: bool | None) -> GraphFacts:
    """The facts of a directed graph; see `FactTable.from_networkx`."""
    if not graph.is_directed():
        raise FactsError(
            "the graph is undirected, and a fact leads from subject to attribute; use networkx.MultiDiGraph"
        )
    node_names = _distinct_names("node", graph.nodes)
    edges = []
    for source, target, data in graph.edges(data=True):
        if data.get("relation") is None:
            raise FactsError(
                f"the edge from {node_names[source]!r} to {node_names[target]!r} has no attribute 'relation'"
            )
        if not isinstance(data["relation"], Hashable):
            raise FactsError(
                f"the edge from {node_names[source]!r} to {node_names[target]!r} has the relation {data['relation']!r}, "
                "which is no name"
            )
        edges.append((source, data["relation"], target))
    relation_names = _distinct_names("relation", (relation for _, relation, _ in edges))
    facts = gather(((0, (node_names[x], relation_names[r], node_names[a])) for x, r, a in edges), None)

    note = graph.graph.get(NOTE)
    note = note if isinstance(note, Mapping) else {}
    nodes = list(node_names.values())
    node_set = set(nodes)
    sources, targets = {x for x, _ in facts}, {a for a, _ in facts.values()}
    if shared is None:
        shared = "attributes" not in note if note else not sources.isdisjoint(targets)
    # Nodes that were taken out of the graph since are no names any more; new ones come last.
    subjects = [name for name in note.get("subjects", ()) if name in node_set]
    attributes = [name for name in note.get("attributes", ()) if name in node_set]
    if shared:
        subjects += nodes
    else:
        known = {*targets, *subjects, *attributes}
        subjects += [name for name in nodes if name in sources or name not in known]
        attributes += [name for name in nodes if name in targets]
    relations = [*note.get("relations", ()), *relation_names.values()]
    return GraphFacts(facts, shared, *([*dict.fromkeys(names)] for names in (subjects, relations, attributes)))


def write_graph(
    triples: Iterable[Triple], subjects: Sequence[str], relations: Sequence[str], attributes: Sequence[str] | None
) -> nx.MultiDiGraph:
    """The graph of the facts; `attributes` is None if they are the subjects. See `FactTable.to_networkx`."""
    note = {"subjects": list(subjects), "relations": list(relations)}
    if attributes is not None:
        note["attributes"] = list(attributes)
    graph = nx.MultiDiGraph(**{NOTE: note})
    graph.add_nodes_from(subjects)
    graph.add_nodes_from(attributes or ())
    graph.add_edges_from((x, a, r, {"relation": r}) for x, r, a in triples)
    return graph


def _distinct_names(what: str, things: Iterable[object]) -> dict[object, str]:
    """Each thing's name by `str`, in order; an error if two have one."""
    names: dict[object, str] = {}
    owner: dict[str, object] = {}
    for thing in things:
        name = names.setdefault(thing, str(thing))  # 1 and 1.0 are one key, and so one thing
        other = owner.setdefault(name, thing)
        if other != thing:
            raise FactsError(f"the {what}s {other!r} and {thing!r} have the same name {name!r}")
        problem = names_problem(name)
        if problem:
            raise FactsError(f"the name of the {what} {thing!r} {problem}")
    return names
