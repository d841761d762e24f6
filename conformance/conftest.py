"""Paths for the judges, and the lines that a run says at its end."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "judges"), str(HERE / "root_writers")]

SUMMARY = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Start the list of lines."""
    config.stash[SUMMARY] = []


@pytest.fixture(scope="session")
def summary(pytestconfig: pytest.Config) -> list[str]:
    """Lines to print when all tests are done."""
    return pytestconfig.stash[SUMMARY]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print them."""
    if config.stash[SUMMARY]:
        terminalreporter.section("conformance")
        for line in config.stash[SUMMARY]:
            terminalreporter.write_line(line)
