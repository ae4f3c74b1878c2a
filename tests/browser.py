"""The system's Chromium, driven by Playwright. Tests that need it skip without."""

import contextlib
import shutil
from collections.abc import Iterator
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)

# Milliseconds from the start of the navigation until the script had run, and until something was seen.
OPEN_TIMES = """() => new Promise((done) => {
  const { domInteractive } = performance.getEntriesByType("navigation")[0];
  const report = (seen) => done([domInteractive, seen.getEntries().at(-1).startTime]);
  new PerformanceObserver(report).observe({ type: "paint", buffered: true });
})"""
# Milliseconds from a click until its handlers are through, and until the second frame after it.
CLICK_TIMES = """(selector) => new Promise((done) => {
  const target = document.querySelector(selector);
  const start = performance.now();
  target.click();
  const handled = performance.now() - start;
  const report = () => done([handled, performance.now() - start]);
  requestAnimationFrame(() => requestAnimationFrame(report));
})"""


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """A running browser.

    Raises:
        ImportError: Playwright or Chromium is not installed.
    """
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        raise ImportError(f"none of {', '.join(NAMES)} is installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()
