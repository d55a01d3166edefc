"""Importing must stay cheap: names are looked up when they are used."""

import subprocess
import sys

import pytest


def run(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("package", ["geotheory", "constructions", "bounds", "paper_checks", "constructions.sizes"])
def test_import_loads_no_torch(package):
    assert run(f"import sys, {package}; print('torch' in sys.modules)") == "False\n"


@pytest.mark.parametrize(
    "first",
    [
        "import constructions.direct",
        "from constructions import direct",
        "import constructions",
        "import constructions.gate",
    ],
)
def test_a_builder_is_not_hidden_by_its_file(first):
    assert run(f"{first}; import constructions; print(constructions.direct.__name__)") == "direct\n"
    assert run(f"{first}; from constructions.direct import prove; print(prove.__name__)") == "prove\n"


def test_public_names_are_there():
    run(
        "import geotheory, constructions, bounds, paper_checks\n"
        "for package in (geotheory, constructions, bounds, paper_checks):\n"
        "    for name in package.__all__:\n"
        "        assert getattr(package, name) is not None, name\n"
        "        assert name in dir(package), name\n"
    )


def test_verify_refuses_what_is_no_model():
    # In a process of its own, where annotations are not checked.
    run(
        "from geotheory import verify\nfrom geotheory.errors import InvalidArgument\n"
        "try:\n    verify(3)\nexcept InvalidArgument as error:\n"
        "    assert 'takes a construction or an nn.Module, not int' in str(error)\n"
        "else:\n    raise AssertionError"
    )


def test_unknown_names_are_attribute_errors():
    import constructions

    with pytest.raises(AttributeError, match="no attribute 'dirct'"):
        _ = constructions.dirct
