"""The example facts, checked against what is true of their subject matter rather than against a copy of them."""

from pathlib import Path

import pytest
import torch

from geotheory import FactTable

EXAMPLES = Path(__file__).parents[1] / "examples"


def read(name: str) -> FactTable:
    return FactTable.from_csv(EXAMPLES / f"{name}.csv")


def one(facts: FactTable, subject: str, *relations: str) -> str | None:
    words = [[facts.relation_index(r) for r in relations]]
    answer = int(facts.compose(words)[0, facts.subject_index(subject)])
    return facts.attributes[answer] if answer >= 0 else None


class TestElements:
    def test_118_elements_with_numbers_and_symbols_of_their_own(self) -> None:
        facts = read("elements")
        assert facts.num_subjects == 118
        assert facts.relations == ("symbol", "atomic number", "group")
        assert not facts.is_composable
        numbers = [one(facts, x, "atomic number") for x in facts.subjects]
        assert numbers == [str(i) for i in range(1, 119)]
        symbols = [one(facts, x, "symbol") for x in facts.subjects]
        assert len(set(symbols)) == 118
        assert None not in symbols

    def test_symbols_spell_the_names_but_for_the_latin_ones(self) -> None:
        # A symbol is made of letters of the element's name, in order, beginning with its first; the exceptions are the
        # eleven elements whose symbols come from other names.
        other = {"Na", "K", "Fe", "Cu", "Ag", "Sn", "Sb", "W", "Au", "Hg", "Pb"}
        facts = read("elements")

        def spells(name: str, symbol: str) -> bool:
            letters = iter(name.lower())
            return name[0] == symbol[0] and all(letter in letters for letter in symbol.lower())

        odd = {one(facts, x, "symbol") for x in facts.subjects if not spells(x, str(one(facts, x, "symbol")))}
        assert odd == other

    def test_symbols_are_those_of_the_periodic_table_in_order(self) -> None:
        table = (
            "HHeLiBeBCNOFNeNaMgAlSiPSClArKCaScTiVCrMnFeCoNiCuZnGaGeAsSeBrKrRbSrYZrNbMoTcRuRhPdAgCdInSnSbTeIXe"
            "CsBaLaCePrNdPmSmEuGdTbDyHoErTmYbLuHfTaWReOsIrPtAuHgTlPbBiPoAtRn"
            "FrRaAcThPaUNpPuAmCmBkCfEsFmMdNoLrRfDbSgBhHsMtDsRgCnNhFlMcLvTsOg"
        )
        facts = read("elements")
        assert "".join(str(one(facts, x, "symbol")) for x in facts.subjects) == table

    @pytest.mark.parametrize(
        ("name", "symbol", "number", "group"),
        [
            ("Hydrogen", "H", 1, 1),
            ("Carbon", "C", 6, 14),
            ("Argon", "Ar", 18, 18),
            ("Iron", "Fe", 26, 8),
            ("Iodine", "I", 53, 17),
            ("Lanthanum", "La", 57, None),
            ("Lutetium", "Lu", 71, 3),
            ("Tungsten", "W", 74, 6),
            ("Mercury", "Hg", 80, 12),
            ("Uranium", "U", 92, None),
            ("Lawrencium", "Lr", 103, 3),
            ("Oganesson", "Og", 118, 18),
        ],
    )
    def test_well_known_elements(self, name: str, symbol: str, number: int, group: int | None) -> None:
        facts = read("elements")
        assert one(facts, name, "symbol") == symbol
        assert one(facts, name, "atomic number") == str(number)
        assert one(facts, name, "group") == (None if group is None else f"group {group}")

    def test_groups_follow_from_the_noble_gases(self) -> None:
        # Group = place in the period, counted from the left for the first two and from the noble gas for the rest.
        facts = read("elements")
        noble = [2, 10, 18, 36, 54, 86, 118]
        for number, name in enumerate(facts.subjects, start=1):
            end = next(g for g in noble if g >= number)
            start = max([0, *(g for g in noble if g < number)])
            place, from_right = number - start, 18 - (end - number)
            if end == 2:
                expected: int | None = {1: 1, 2: 18}[number]
            elif place <= 2:
                expected = place
            else:
                # In the long periods, everything more than 16 places from the end is f-block.
                expected = from_right if from_right >= 3 else None
            assert one(facts, name, "group") == (None if expected is None else f"group {expected}")

    def test_sizes_of_the_groups(self) -> None:
        facts = read("elements")
        groups = [one(facts, x, "group") for x in facts.subjects]
        sizes = [groups.count(f"group {g}") for g in range(1, 19)]
        assert sizes == [7, 6, *[4] * 10, *[6] * 5, 7]
        assert groups.count(None) == 28

    def test_attributes_differ_from_subjects(self) -> None:
        facts = read("elements")
        assert not {*facts.subjects} & {*facts.attributes}
        assert facts.num_attributes == 118 + 118 + 18


class TestPitchClasses:
    INTERVALS = (
        "minor second",
        "major second",
        "minor third",
        "major third",
        "perfect fourth",
        "tritone",
        "perfect fifth",
        "minor sixth",
        "major sixth",
        "minor seventh",
        "major seventh",
        "octave",
    )

    def test_bijections_on_twelve(self) -> None:
        facts = read("pitch_classes")
        assert facts.is_bijective
        assert (facts.num_subjects, facts.relations) == (12, self.INTERVALS)

    def test_intervals_add_modulo_twelve(self) -> None:
        facts = read("pitch_classes")
        pairs = [(i, j) for i in range(12) for j in range(12)]
        together = facts.compose(pairs)
        # Interval number i is i + 1 semitones, and twelve semitones are number 11.
        sums = torch.tensor([(i + j + 1) % 12 for i, j in pairs])
        assert torch.equal(together, facts.table[sums])

    def test_the_octave_is_the_identity(self) -> None:
        facts = read("pitch_classes")
        assert torch.equal(facts.table[facts.relation_index("octave")], torch.arange(12))

    def test_the_circle_of_fifths(self) -> None:
        facts = read("pitch_classes")
        circle = ["C"]
        for _ in range(11):
            circle.append(str(one(facts, circle[-1], "perfect fifth")))
        assert circle == ["C", "G", "D", "A", "E", "B", "F♯", "C♯", "A♭", "E♭", "B♭", "F"]
        assert one(facts, circle[-1], "perfect fifth") == "C"

    def test_white_keys(self) -> None:
        facts = read("pitch_classes")
        scale = ["C"]
        for step in ("major", "major", "minor", "major", "major", "major", "minor"):
            scale.append(str(one(facts, scale[-1], f"{step} second")))
        assert scale == list("CDEFGABC")


class TestFamily:
    def test_wife_and_husband_are_inverse(self) -> None:
        facts = read("family")
        married = 0
        for x in facts.subjects:
            for there, back in (("wife", "husband"), ("husband", "wife")):
                spouse = one(facts, x, there)
                assert spouse is None or one(facts, spouse, back) == x
                married += spouse is not None
        assert married == 2 * 12

    def test_nobody_is_wife_and_husband_or_mother_and_father(self) -> None:
        facts = read("family")
        people = {r: {one(facts, x, r) for x in facts.subjects} - {None} for r in facts.relations}
        women, men = people["wife"] | people["mother"], people["husband"] | people["father"]
        assert not women & men

    def test_known_parents_are_married(self) -> None:
        facts = read("family")
        for x in facts.subjects:
            mother, father = one(facts, x, "mother"), one(facts, x, "father")
            assert father is None or one(facts, father, "wife") == mother

    def test_nobody_is_their_own_ancestor_and_there_are_four_generations(self) -> None:
        facts = read("family")

        def generations(x: str) -> int:
            parents = [p for p in (one(facts, x, "mother"), one(facts, x, "father")) if p is not None]
            return 1 + max(map(generations, parents), default=0)

        # A cycle would end in a RecursionError.
        depth = {x: generations(x) for x in facts.subjects}
        assert max(depth.values()) == 4
        assert 25 <= len(depth) <= 40

    def test_nobody_marries_within_the_family(self) -> None:
        facts = read("family")

        def ancestors(x: str) -> set[str]:
            parents = {p for p in (one(facts, x, "mother"), one(facts, x, "father")) if p is not None}
            return parents.union(*map(ancestors, parents))

        for x in facts.subjects:
            wife = one(facts, x, "wife")
            assert wife is None or not ancestors(x) & ancestors(wife)

    def test_mothers_in_law(self) -> None:
        facts = read("family")
        found = {x: y for x in facts.subjects if (y := one(facts, x, "wife", "mother")) is not None}
        assert len(found) >= 5
        assert found["Mateo Peñalba"] == "Ragnhild Sørlie"
        assert one(facts, "Ella Bělková", "mother", "mother") == "Öykü Demir"
        # Something must be missing at the second hop, and something at the first.
        assert one(facts, "Einar Sørlie", "wife") is not None
        assert one(facts, "Einar Sørlie", "wife", "mother") is None
        assert one(facts, "Ida Quill", "wife") is None


@pytest.mark.parametrize("name", ["elements", "pitch_classes", "family"])
def test_files_are_tidy(name: str) -> None:
    text = (EXAMPLES / f"{name}.csv").read_bytes().decode()
    lines = text.splitlines()
    assert lines[0] == "subject,relation,attribute"
    assert len(set(lines)) == len(lines)
    assert all(cell == cell.strip() for line in lines for cell in line.split(","))
    assert "\r" not in text


def test_the_readme_counts_the_facts() -> None:
    readme = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    for name in ("elements", "pitch_classes", "family"):
        facts = read(name)
        known, possible = facts.table.numel() - facts.missing, facts.table.numel()
        assert (f"| {known} of {possible} |" if facts.missing else f"| {known}, all |") in readme
        assert f"| {facts.num_subjects} " in readme
