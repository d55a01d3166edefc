"""Shared pytest options, hypothesis profile and fixtures."""

import pytest
import torch
from hypothesis import settings

# No test depends on the clock: a slow machine must not fail a property.
settings.register_profile("geotheory", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("geotheory")

# Tests run in parallel processes already, and their tensors are small.
torch.set_num_threads(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--large", action="store_true", help="also run the tests that need gigabytes or minutes")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--large"):
        skip = pytest.mark.skip(reason="needs gigabytes or minutes; run with --large")
        for item in items:
            if "large" in item.keywords:
                item.add_marker(skip)
