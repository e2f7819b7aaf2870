"""What holds for all tests: they are the same on every run, however slow the machine."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("gate", derandomize=True, deadline=None)
settings.load_profile("gate")
