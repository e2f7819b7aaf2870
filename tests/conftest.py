"""What holds for all tests: they are the same on every run, however slow the machine."""

from __future__ import annotations

import pytest
from hypothesis import settings

settings.register_profile("gate", derandomize=True, deadline=None)
settings.load_profile("gate")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--regenerate", action="store_true", help="write the kept pictures anew, to be looked at")


@pytest.fixture
def regenerate(request: pytest.FixtureRequest) -> bool:
    """Whether kept pictures are to be written anew before they are compared."""
    return bool(request.config.getoption("--regenerate"))
