"""Headless Chromium, and one cache of the lab for all notebooks that are run here."""

import pytest

CHROMIUM = "/usr/bin/chromium"


@pytest.fixture(scope="session")
def browser():
    # Not at the head: make test collects this folder without the extras.
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def lab_cache(tmp_path_factory):
    return tmp_path_factory.mktemp("lab")
