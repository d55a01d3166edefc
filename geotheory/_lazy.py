"""Packages that hand their public names on lazily (PEP 562), so that importing one loads neither torch nor sympy."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

__all__ = ["attach"]


def attach(package: str, names: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Make `package` look its public names up when they are first used.

    Parameters
    ----------
    package
        The package's `__name__`.
    names
        Public name -> submodule that defines it. A name mapped to itself may also be a function in the submodule of the
        same name (`constructions.direct`): the package then hands out the function.

    Returns
    -------
    The package's `__getattr__`, `__dir__` and `__all__`.
    """
    module = sys.modules[package]

    class Package(ModuleType):
        # The import system binds a submodule to its package after running it; where a public name is both a file and
        # the one thing in it, the thing must win whichever of the two is imported first.
        def __setattr__(self, name: str, value: Any) -> None:
            if isinstance(value, ModuleType) and names.get(name) == name:
                value = getattr(value, name, value)
            super().__setattr__(name, value)

    module.__class__ = Package

    def __getattr__(name: str) -> Any:  # noqa: N807
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        submodule = import_module(f"{package}.{names[name]}")
        value = getattr(submodule, name, submodule)
        setattr(module, name, value)
        return value

    def __dir__() -> list[str]:  # noqa: N807
        return sorted({*vars(module), *names})

    return __getattr__, __dir__, sorted(names)
