"""Tests that could run are not skipped in silence."""

import importlib.util
from types import SimpleNamespace

import pytest
from notebook_files import ROOT

from contamination.data import sources


@pytest.mark.parametrize("is_here", [True, False])
def test_a_test_that_is_skipped_though_the_files_are_there_fails_the_session(monkeypatch, is_here):
    spec = importlib.util.spec_from_file_location("hooks", ROOT / "tests/conftest.py")
    hooks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hooks)
    monkeypatch.setattr(sources, "available", lambda: is_here)
    lines = []
    reporter = SimpleNamespace(
        stats={"skipped": [SimpleNamespace(keywords={"mirror": 1})]},
        line=lambda text, **_: lines.append(text),
    )
    plugins = SimpleNamespace(get_plugin=lambda name: reporter)
    session = SimpleNamespace(config=SimpleNamespace(pluginmanager=plugins), exitstatus=0)
    hooks.pytest_sessionfinish(session, 0)
    assert (session.exitstatus == pytest.ExitCode.TESTS_FAILED) == is_here
    assert lines == ["skipped although present: mirror"] * is_here
