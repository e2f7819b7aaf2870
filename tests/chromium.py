"""A Chromium without a window for tests of pages: it loads files of this machine only, and tells all it asked for."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import blockgraph as bg

STACK = Path(__file__).parent.parent / "specs" / "pre_norm_stack.yaml"
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
PROBES = (Path(__file__).parent / "page_probes.js").read_text(encoding="utf-8")
SWITCHES = ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run")


def missing() -> str:
    """Why there is no browser; nothing if there is one."""
    if program() is None:
        return "there is no Chromium"
    if shutil.which("chromedriver") is None:
        return "there is no chromedriver (Debian's package chromium-driver)"
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "the package selenium is not installed"
    return ""


def program() -> str | None:
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


class Page:
    """A page in the browser, and what it has done."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(
        self, path: Path, width: int = 1280, height: int = 800, *, dark: bool = False, script: bool = True
    ) -> None:
        """Load a file in a window of this size, on a machine that prefers this theme."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": [scheme]})
        self.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not script})
        self.requests(), self.complaints()  # what was there before
        self.driver.get(path.as_uri())
        if script:
            self.driver.execute_script(PROBES)

    def run(self, script: str, *values: Any) -> Any:
        """The value of a script in the page."""
        return self.driver.execute_script(f"return {script}", *values)

    def press(self, *keys: str) -> None:
        """Press keys where the focus is."""
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver, duration=0).send_keys(*keys).perform()

    def click(self, css: str, number: int = 0) -> None:
        """Click what a selector finds, if it can be seen."""
        found = [one for one in self.driver.find_elements("css selector", css) if one.is_displayed()]
        found[number].click()

    def text(self, css: str) -> str:
        """The text of an element as it is in the page, with what cannot be seen."""
        found: str = self.run("document.querySelector(arguments[0]).textContent", css)
        return found

    def count(self, css: str) -> int:
        """How many elements a selector finds that can be seen."""
        seen = "one => one.getClientRects().length"
        found: int = self.run(f"[...document.querySelectorAll(arguments[0])].filter({seen}).length", css)
        return found

    def requests(self) -> list[str]:
        """Everything that was asked for since the last call."""
        sent = (json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance"))
        return [one["params"]["request"]["url"] for one in sent if one["method"] == "Network.requestWillBeSent"]

    def complaints(self) -> list[str]:
        """What the console says since the last call: errors and breaches of the page's policy."""
        return [entry["message"] for entry in self.driver.get_log("browser")]


@contextmanager
def chromium(folder: Path) -> Iterator[Page]:
    """A browser that keeps its files in a folder."""
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = program() or ""
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    for switch in (*SWITCHES, f"--user-data-dir={folder}", *(["--no-sandbox"] if root else [])):
        options.add_argument(switch)
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        yield Page(driver)
    finally:
        driver.quit()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """One browser for all tests of a file."""
    with chromium(tmp_path_factory.mktemp("chromium")) as page:
        yield page


def chosen(page: Page) -> str:
    """The title of what is chosen in the picture."""
    found: str = page.run("picture.svg.querySelector('.chosen').getAttribute('aria-label')")
    return found


def focused(page: Page) -> str:
    found: str = page.run("document.activeElement.id")
    return found


def scale(page: Page) -> float:
    """The width of the part of the picture that is shown."""
    return float(page.run("picture.svg.getAttribute('viewBox')").split()[2])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def stack(folder: Path) -> Path:
    """A page with a trace."""
    program = bg.compile(STACK)
    path = folder / "stack.html"
    path.write_text(bg.render_html(program, trace=program.trace(*program.sample(0))), encoding="utf-8")
    return path


@pytest.fixture
def page(browser: Page, stack: Path) -> Iterator[Page]:
    """The page of a stack, opened anew; whatever a test does, the page neither complains nor asks for anything."""
    browser.open(stack)
    yield browser
    assert browser.complaints() == []
    assert browser.requests() == [stack.as_uri()]
