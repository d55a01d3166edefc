"""Facts in CSV and TSV files and in networkx graphs: round trips, and every kind of bad input."""

import csv
import os
import stat
import string
from pathlib import Path

import networkx as nx
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from geotheory import FactTable, csv_files
from geotheory.errors import FactsError, InvalidArgument

# All of Unicode that a text file can hold, and every other time something that CSV finds difficult. (Not `st.text`, which
# would melt both alphabets into one, where the few difficult characters hardly ever occur.)
CHARACTERS = st.one_of(
    st.sampled_from(" \",;|\t\r\n'\ufeff\u2028\x85x"), st.characters(codec="utf-8", exclude_characters="\0")
)
NAMES = st.lists(CHARACTERS, min_size=1, max_size=6).map("".join).filter(str.strip)

TRIPLES = st.lists(
    st.tuples(NAMES, st.sampled_from(["r", 'the "other"\r\none', "mère", "\ufeff,"]), NAMES), min_size=1, max_size=12
).map(lambda rows: [(x, r, a) for (x, r), a in {(x, r): a for x, r, a in rows}.items()])


@st.composite
def entity_triples(draw: st.DrawFn) -> list[tuple[str, str, str]]:
    """Triples among few names, so that subjects, relations and attributes recur in every order."""
    entities = draw(st.lists(NAMES, min_size=1, max_size=6, unique=True))
    name = st.sampled_from(entities)
    rows = draw(st.lists(st.tuples(name, st.sampled_from("rst"), name), min_size=1, max_size=20))
    return [(x, r, a) for (x, r), a in {(x, r): a for x, r, a in rows}.items()]


@pytest.fixture
def write(tmp_path: Path):
    def writing(content: str | bytes, name: str = "facts.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return writing


HEADER = "subject,relation,attribute\n"
ANN = FactTable.from_triples([("Ann", "wife", "Bo"), ("Bo", "mother", "Cy")])


class TestReading:
    @pytest.mark.parametrize(
        "content",
        [
            HEADER + "Ann,wife,Bo\nBo,mother,Cy\n",
            HEADER + "Ann,wife,Bo\nBo,mother,Cy",
            "\ufeff" + HEADER + "Ann,wife,Bo\nBo,mother,Cy\n",
            "\ufeff\n" + HEADER + "Ann,wife,Bo\nBo,mother,Cy\n",
            (HEADER + "Ann,wife,Bo\nBo,mother,Cy\n").replace("\n", "\r\n"),
            (HEADER + "Ann,wife,Bo\nBo,mother,Cy\n").replace("\n", "\r"),
            "\n\n" + HEADER + "\n  \nAnn,wife,Bo\n\n\t\nBo,mother,Cy\n\n\n",
            HEADER + "Ann,wife,Bo\n,,\nBo,mother,Cy\n,,\n",
            HEADER + '"Ann","wife",Bo\nBo,mother,"Cy"\n',
            HEADER + "Ann,wife,Bo\nBo,mother,Cy\nAnn,wife,Bo\n",
            "attribute,year,subject,relation\nBo,,Ann,wife\nCy,1970,Bo,mother\n",
            "subject,relation,attribute,,\nAnn,wife,Bo,,\nBo,mother,Cy,,\n",
            "subject;relation;attribute\nAnn;wife;Bo\nBo;mother;Cy\n",
            "subject\trelation\tattribute\nAnn\twife\tBo\nBo\tmother\tCy\n",
            "subject|relation|attribute\nAnn|wife|Bo\nBo|mother|Cy\n",
            '"subject";"relation";"attribute"\nAnn;wife;Bo\nBo;mother;Cy\n',
        ],
    )
    def test_spellings_of_the_same_facts(self, write, content: str) -> None:
        assert FactTable.from_csv(write(content)) == ANN

    @pytest.mark.parametrize("name", ["facts.tsv", "facts.TAB"])
    def test_tabs_by_suffix(self, write, name: str) -> None:
        facts = FactTable.from_csv(write("subject\trelation\tattribute\nA, B\tr\tC;D\n", name))
        assert (facts.subjects, facts.attributes) == (("A, B",), ("C;D",))

    def test_delimiter_by_hand(self, write) -> None:
        path = write("subject:relation:attribute\nAnn:wife:Bo\nBo:mother:Cy\n")
        assert FactTable.from_csv(path, delimiter=":") == ANN

    def test_the_header_decides_by_names_before_numbers(self, write) -> None:
        # Commas would give more columns, but not these.
        path = write("subject;relation;attribute;a,b,c,d,e\nAnn;wife;Bo;\nBo;mother;Cy;\n")
        assert FactTable.from_csv(path) == ANN

    def test_columns_by_name(self, write) -> None:
        path = write("who,how,whom\nAnn,wife,Bo\nBo,mother,Cy\n")
        assert FactTable.from_csv(path, subject="who", relation="how", attribute="whom") == ANN
        swapped = FactTable.from_csv(path, subject="whom", relation="how", attribute="who")
        assert ("Cy", "mother", "Bo") in list(swapped.triples())

    def test_quoted_delimiters_quotes_and_lines(self, write) -> None:
        facts = FactTable.from_csv(write(HEADER + '"Ann, the ""elder""",wife,"Bo\nof Rome"\n'))
        assert list(facts.triples()) == [('Ann, the "elder"', "wife", "Bo\nof Rome")]

    def test_spaces_belong_to_names(self, write) -> None:
        facts = FactTable.from_csv(write(HEADER + " Ann, wife,Bo \n"))
        assert list(facts.triples()) == [(" Ann", " wife", "Bo ")]

    def test_shared(self, write) -> None:
        path = write(HEADER + "Ann,wife,Bo\n")
        assert not FactTable.from_csv(path).is_composable
        assert FactTable.from_csv(path, shared=True).is_composable
        path = write(HEADER + "Ann,wife,Bo\nBo,mother,Cy\n")
        assert FactTable.from_csv(path, shared=False).attributes == ("Bo", "Cy")

    def test_a_path_may_be_a_string(self, write) -> None:
        assert FactTable.from_csv(str(write(HEADER + "Ann,wife,Bo\nBo,mother,Cy\n"))) == ANN


class TestBadFiles:
    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("", r"facts.csv is empty; its first line must name the columns subject, relation, attribute"),
            ("\n \r\n", r"facts.csv is empty; its first line must name"),
            (b"\xef\xbb\xbf", r"facts.csv is empty; its first line must name"),
            (HEADER, r"facts.csv has a header but no facts"),
            (HEADER + "\n,,\n", r"facts.csv has a header but no facts"),
            (
                "subject,relations,object\na,r,b\n",
                r"line 1: no column 'relation' among 'subject', 'relations', 'object'; did you mean relations\?; "
                r"choose columns with subject=, relation= and attribute=, here relation=\.\.\.",
            ),
            ("\nAnn,wife,Bo\n", r"line 2: no column 'subject' among 'Ann', 'wife', 'Bo'; choose columns with"),
            ("subject,relation,attribute,subject\na,r,b,c\n", r"line 1: two columns are named 'subject'"),
            ("note,subject,relation,attribute,note\n,a,r,b,\n", r"line 1: two columns are named 'note'"),
            (HEADER + "a,r,b\nc,,d\n", r"line 3: the 'relation' cell is empty"),
            (HEADER + "a,r,b\n\nc,r,\n", r"line 4: the 'attribute' cell is empty"),
            (HEADER + '"a\nb\nc",r,b\n" ",r,d\n', r"line 5: the 'subject' cell is empty"),
            (HEADER + "a,r,b\nc,r\n", r"line 3: 2 cells where the header has 3"),
            (HEADER + "a,r,b\nc\n", r"line 3: 1 cell where the header has 3"),
            (HEADER + "a,r,b,c\n", r"line 2: 4 cells where the header has 3"),
            (HEADER + "a,r,b\r\n\r\na,r,c\r\n", r"'a' has two attributes under 'r': 'b' \(line 2\) and 'c' \(line 4\)"),
            (HEADER + 'a,r,"b\nc"\na,r,d\n', r"'a' has two .*: 'b\\nc' \(line 2\) and 'd' \(line 4\)"),
            (HEADER + 'a,r,b\n"c,r,d\ne,r,f\n', r"line 3: check the quotes from here on \(unexpected end of data\)"),
            (HEADER + 'a,r,b\n"c"d,r,d\n', r"line 3: check the quotes from here on"),
            (HEADER.encode() + b"a,r,b\nM\xe8re,r,c\n", r"line 3: byte 0xe8 is not UTF-8; save the file as UTF-8"),
            (b"\xef\xbb\xbf" + HEADER.encode() + b"a,r,b\r\n\xff,r,c\n", r"line 3: byte 0xff is not UTF-8"),
            (HEADER.encode() + b"a,r,b\na\0,r,c\n", r"line 3: a NUL byte; this is not a text file"),
            ((HEADER + "a,r,b\n").encode("utf-16"), r"facts.csv is UTF-16, not UTF-8; save it as UTF-8"),
        ],
    )
    def test_the_message_says_what_and_where(self, write, content: str | bytes, message: str) -> None:
        path = write(content)
        with pytest.raises(FactsError, match=message) as caught:
            FactTable.from_csv(path)
        assert str(caught.value).startswith(str(path))

    def test_a_cell_beyond_the_limit_of_the_csv_module(self, write) -> None:
        with pytest.raises(FactsError, match=r"line 2: check the quotes from here on .*field larger than field limit"):
            FactTable.from_csv(write(HEADER + "a" * (csv.field_size_limit() + 1) + ",r,b\n"))

    def test_a_tsv_that_has_commas(self, write) -> None:
        with pytest.raises(FactsError, match="no column 'subject' among 'subject,relation,attribute'"):
            FactTable.from_csv(write(HEADER + "a,r,b\n", "facts.tsv"))

    def test_a_directory(self, tmp_path: Path) -> None:
        with pytest.raises(FactsError, match="is a directory, not a file of facts"):
            FactTable.from_csv(tmp_path)

    def test_no_such_file(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError, match=r"nowhere\.csv"):
            FactTable.from_csv(tmp_path / "nowhere.csv")

    def test_columns_must_differ(self, write) -> None:
        with pytest.raises(InvalidArgument, match="three different columns, not 'attribute', 'relation', 'attribute'"):
            FactTable.from_csv(write(HEADER + "a,r,b\n"), subject="attribute")

    @pytest.mark.parametrize("delimiter", ["", ",,", '"', "\n", "\r", "\0", " "])
    def test_no_delimiter(self, write, delimiter: str) -> None:
        with pytest.raises(InvalidArgument, match="the delimiter must be one character such as ','"):
            FactTable.from_csv(write(HEADER + "a,r,b\n"), delimiter=delimiter)


class TestCsvRoundTrip:
    @given(triples=TRIPLES, shared=st.booleans(), suffix=st.sampled_from([".csv", ".tsv", ".txt"]))
    def test_of_any_names(self, tmp_path_factory, triples, shared: bool, suffix: str) -> None:
        path = tmp_path_factory.mktemp("facts") / f"facts{suffix}"
        facts = FactTable.from_triples(triples, shared=shared)
        facts.to_csv(path)
        assert FactTable.from_csv(path, shared=shared) == facts

    @given(triples=entity_triples(), shared=st.booleans())
    def test_keeps_the_indices_of_whatever_came_from_triples(self, tmp_path_factory, triples, shared: bool) -> None:
        path = tmp_path_factory.mktemp("facts") / "facts.csv"
        facts = FactTable.from_triples(triples, shared=shared)
        facts.to_csv(path)
        assert FactTable.from_csv(path, shared=shared) == facts

    def test_keeps_the_indices_where_facts_must_wait_for_one_another(self, tmp_path: Path) -> None:
        # Subject by subject, "e" would appear before "d", and both before "c".
        rows = [("a", "r", "b"), ("c", "r", "a"), ("b", "s", "d"), ("a", "s", "e"), ("e", "r", "f"), ("a", "t", "g")]
        facts = FactTable.from_triples(rows)
        assert "".join(facts.subjects) == "abcdefg"
        facts.to_csv(tmp_path / "facts.csv")
        assert FactTable.from_csv(tmp_path / "facts.csv") == facts

    @given(seed=st.integers(0, 100), entities=st.integers(1, 30))
    def test_keeps_the_facts_of_random_tables(self, tmp_path_factory, seed: int, entities: int) -> None:
        path = tmp_path_factory.mktemp("facts") / "facts.csv"
        facts = FactTable.random_bijections(entities, 3, seed=seed)
        facts.to_csv(path)
        assert set(FactTable.from_csv(path).triples()) == set(facts.triples())

    @pytest.mark.parametrize(
        ("facts", "message"),
        [
            (FactTable(torch.tensor([[0, 0, -1]]), list("abc")), "no fact mentions the entity 'c'"),
            (FactTable(torch.tensor([[0, -1]]), list("ab"), attributes=["A"]), "no fact mentions the subject 'b'"),
            (FactTable(torch.tensor([[0, 0]]), attributes=list("AB")), "no fact mentions the attribute 'B'"),
            (FactTable(torch.tensor([[-1, -1], [0, 1]]), relations=list("rs")), "no fact mentions the relation 'r'"),
        ],
    )
    def test_names_without_facts_are_not_lost_silently(self, tmp_path: Path, facts: FactTable, message: str) -> None:
        path = tmp_path / "facts.csv"
        with pytest.raises(FactsError, match=f"{message}, so rows of facts would lose it; pass drop_unmentioned=True"):
            facts.to_csv(path)
        assert list(tmp_path.iterdir()) == []
        facts.to_csv(path, drop_unmentioned=True)
        assert set(FactTable.from_csv(path, shared=facts.is_composable).triples()) == set(facts.triples())

    def test_an_entity_that_is_only_an_attribute_is_mentioned(self, tmp_path: Path) -> None:
        FactTable(torch.tensor([[1, -1]])).to_csv(tmp_path / "facts.csv")


class TestWriting:
    def test_the_file_is_plain_csv(self, tmp_path: Path) -> None:
        path = tmp_path / "facts.csv"
        ANN.to_csv(path)
        assert path.read_bytes() == b"subject,relation,attribute\r\nAnn,wife,Bo\r\nBo,mother,Cy\r\n"
        assert list(tmp_path.iterdir()) == [path]

    @pytest.mark.parametrize("interruption", [KeyboardInterrupt, OSError(28, "No space left on device")])
    def test_an_interruption_leaves_the_old_file(self, tmp_path: Path, monkeypatch, interruption) -> None:
        path = tmp_path / "facts.csv"
        path.write_text("old")

        def interrupted(_: int) -> None:
            raise interruption

        monkeypatch.setattr(csv_files.os, "fsync", interrupted)
        with pytest.raises((KeyboardInterrupt, OSError)):
            ANN.to_csv(path)
        assert path.read_text() == "old"
        assert list(tmp_path.iterdir()) == [path]

    @pytest.mark.skipif(os.name != "posix", reason="permissions and links are those of POSIX")
    def test_permissions_and_links_survive(self, tmp_path: Path) -> None:
        path, link = tmp_path / "facts.csv", tmp_path / "link.csv"
        path.write_text("old")
        path.chmod(0o640)
        link.symlink_to(path)
        ANN.to_csv(link)
        assert link.is_symlink()
        assert FactTable.from_csv(path) == ANN
        assert stat.S_IMODE(path.stat().st_mode) == 0o640

    def test_a_directory_is_no_file(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidArgument, match="is a directory; name a file to write to"):
            ANN.to_csv(tmp_path)

    @pytest.mark.skipif(os.name != "posix", reason="/dev/null")
    def test_a_device_is_not_replaced(self) -> None:
        with pytest.raises(InvalidArgument, match="/dev/null is no regular file"):
            ANN.to_csv("/dev/null")

    def test_no_such_directory(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError, match="nowhere"):
            ANN.to_csv(tmp_path / "nowhere" / "facts.csv")


@st.composite
def named_tables(draw: st.DrawFn) -> FactTable:
    """Any table: isolated entities, silent relations, attributes that share some names with the subjects."""
    names = st.lists(NAMES, min_size=1, max_size=5, unique=True)
    subjects, relations = draw(names), draw(names)
    pool = st.sampled_from(subjects) | NAMES
    attributes = draw(st.none() | st.lists(pool, min_size=1, max_size=5, unique=True))
    A = len(subjects if attributes is None else attributes)
    row = st.lists(st.integers(-1, A - 1), min_size=len(subjects), max_size=len(subjects))
    return FactTable(torch.tensor([draw(row) for _ in relations]), subjects, relations, attributes)


def graph_of(*edges: tuple[object, object, object]) -> nx.MultiDiGraph:
    graph = nx.MultiDiGraph()
    for source, relation, target in edges:
        graph.add_edge(source, target, relation=relation)
    return graph


class TestNetworkx:
    @given(facts=named_tables())
    def test_round_trip_of_any_table(self, facts: FactTable) -> None:
        graph = facts.to_networkx()
        assert graph.number_of_edges() == facts.table.numel() - facts.missing
        assert {(x, r, a) for x, a, r in graph.edges(data="relation")} == set(facts.triples())
        back = FactTable.from_networkx(graph)
        assert back == facts
        assert FactTable.from_networkx(graph.copy()) == facts

    def test_round_trip_of_numbered_names_and_no_facts_at_all(self) -> None:
        for facts in (FactTable.random_bijections(20, 3), FactTable.random_functions(4, 2, missing=1.0)):
            assert FactTable.from_networkx(facts.to_networkx()) == facts

    def test_edges_can_be_found_by_relation(self) -> None:
        assert ANN.to_networkx().has_edge("Ann", "Bo", key="wife")

    def test_graphs_from_elsewhere(self) -> None:
        facts = FactTable.from_networkx(graph_of((1, "next", 2), (2, "next", 3), (3, "other", 1)))
        assert facts.subjects == ("1", "2", "3")
        assert facts.relations == ("next", "other")
        assert facts.table.tolist() == [[1, 2, -1], [-1, -1, 0]]
        assert facts.is_composable

    def test_bipartite_graphs_from_elsewhere(self) -> None:
        graph = graph_of(("Iron", "symbol", "Fe"), ("Gold", "symbol", "Au"))
        graph.add_node("Tin")
        facts = FactTable.from_networkx(graph)
        assert (facts.subjects, facts.attributes) == (("Iron", "Gold", "Tin"), ("Fe", "Au"))
        assert facts.table.tolist() == [[0, 1, -1]]
        assert FactTable.from_networkx(graph, shared=True).num_subjects == 5

    def test_shared_can_be_denied(self) -> None:
        facts = FactTable.from_networkx(graph_of(("a", "r", "b"), ("b", "r", "c")), shared=False)
        assert (facts.subjects, facts.attributes) == (("a", "b"), ("b", "c"))

    def test_plain_digraphs_and_repeated_edges(self) -> None:
        graph = nx.DiGraph()
        graph.add_edge("a", "b", relation=7)
        assert FactTable.from_networkx(graph).relations == ("7",)
        twice = graph_of(("a", "r", "b"), ("a", "r", "b"))
        assert list(FactTable.from_networkx(twice).triples()) == [("a", "r", "b")]

    def test_edited_graphs(self) -> None:
        graph = ANN.to_networkx()
        graph.remove_node("Bo")
        graph.add_edge("Di", "Ann", relation="father")
        facts = FactTable.from_networkx(graph)
        assert facts.subjects == ("Ann", "Cy", "Di")
        assert facts.relations == ("wife", "mother", "father")
        assert list(facts.triples()) == [("Di", "father", "Ann")]

    def test_a_node_that_was_taken_out_and_put_back_keeps_its_number(self) -> None:
        graph = ANN.to_networkx()
        graph.remove_node("Ann")
        graph.add_edge("Ann", "Bo", relation="wife")
        assert FactTable.from_networkx(graph) == ANN

    def test_edited_graphs_with_attributes_of_their_own(self) -> None:
        graph = FactTable.from_triples([("Iron", "symbol", "Fe"), ("Gold", "symbol", "Au")]).to_networkx()
        graph.remove_node("Fe")
        graph.add_edge("Tin", "Sn", relation="symbol")
        facts = FactTable.from_networkx(graph)
        assert (facts.subjects, facts.attributes) == (("Iron", "Gold", "Tin"), ("Au", "Sn"))
        assert facts.table.tolist() == [[-1, 0, 1]]

    def test_the_graph_survives_json(self) -> None:
        data = nx.node_link_data(ANN.to_networkx(), edges="edges")
        assert FactTable.from_networkx(nx.node_link_graph(data, edges="edges")) == ANN

    @pytest.mark.parametrize(
        ("graph", "message"),
        [
            (nx.Graph([("a", "b", {"relation": "r"})]), "the graph is undirected.*use networkx.MultiDiGraph"),
            (nx.MultiGraph([("a", "b", {"relation": "r"})]), "the graph is undirected"),
            (nx.DiGraph([("a", "b")]), "the edge from 'a' to 'b' has no attribute 'relation'"),
            (graph_of(("a", None, "b")), "the edge from 'a' to 'b' has no attribute 'relation'"),
            (graph_of(("a", ["r"], "b")), r"the edge from 'a' to 'b' has the relation \['r'\], which is no name"),
            (graph_of(("a", "r", "b"), ("a", "r", "c")), "'a' has two attributes under 'r': 'b' and 'c'; a relation"),
            (graph_of((1, "r", "1")), "the nodes 1 and '1' have the same name '1'"),
            (graph_of(("a", 1, "b"), ("a", "1", "b")), "the relations 1 and '1' have the same name '1'"),
            (graph_of(("a", "", "b")), "the name of the relation '' is empty"),
            (graph_of(("", "r", "b")), "the name of the node '' is empty"),
            (nx.MultiDiGraph(), "the graph has no edges, so there are no facts"),
            (nx.empty_graph(3, create_using=nx.MultiDiGraph), "the graph has no edges, so there are no facts"),
        ],
    )
    def test_bad_graphs(self, graph: nx.Graph, message: str) -> None:
        with pytest.raises(FactsError, match=message):
            FactTable.from_networkx(graph)


def test_the_names_of_the_strategy_include_the_difficult_ones() -> None:
    # A guard on the round-trip tests themselves: they say little if the names are all letters.
    seen: set[str] = set()

    @given(NAMES)
    def collect(name: str) -> None:
        seen.update(name)

    collect()
    assert {'"', ",", "\n", "\r", "\t", " "} <= seen
    assert seen - set(string.printable)
