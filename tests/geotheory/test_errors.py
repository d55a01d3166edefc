"""Error messages name the thing and the way out."""

import pytest

from geotheory.errors import InvalidArgument, UnknownName, nearest, positive_integer


def test_nearest_names():
    assert nearest("irn", ["Iron", "Tin", "Gold"]) == "; did you mean Iron or Tin?"
    assert nearest("zzz", ["Iron", "Tin"]) == "; known: Iron, Tin"
    assert nearest("zzz", map(str, range(100))).endswith("6, 7, ...")
    assert nearest("zzz", []) == ""
    assert nearest("mothre", ["mother", "father", "brother"]) in (
        "; did you mean mother, brother or father?",
        "; did you mean mother or brother?",
        "; did you mean mother?",
    )


def test_unknown_name_reads_well():
    error = UnknownName("subject", "Irn", ["Iron"])
    assert str(error) == "unknown subject 'Irn'; did you mean Iron?"
    assert isinstance(error, KeyError)
    assert isinstance(error, ValueError)


@pytest.mark.parametrize("value", [0, -3, 1.0, "4", None, True, float("nan")])
def test_positive_integer_refuses(value):
    with pytest.raises(InvalidArgument, match="N must be"):
        positive_integer("N", value)


def test_positive_integer_takes_what_is_an_integer():
    import numpy as np

    assert positive_integer("N", np.int64(3)) == 3
    assert positive_integer("N", 10**30) == 10**30
    assert positive_integer("N", 0, least=0) == 0
