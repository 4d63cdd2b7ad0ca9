"""Take the picture of the web application that the README shows.

Starts a server, annotates the textbook spectra that come with mzseek, opens one of them and points
at a peak. Needs Chromium and playwright. Run: python benchmarks/serve_screenshot.py
"""

import argparse
import json
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Page, sync_playwright

from mzseek.datasets.files import DEMO_QUERIES

PORT = 8799
WIDTH, HEIGHT = 1400, 1360
FEATURE, PEAK = 1, -2  # quercetin, and the strongest peak beside its precursor
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"]


def wait_until_ready(server: subprocess.Popen[bytes], url: str) -> None:
    while server.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5) as answer:
                if json.load(answer)["status"] == "ready":
                    return
        except OSError:
            pass
        time.sleep(0.5)
    sys.exit("the server has ended")


def take(page: Page, url: str, out: Path) -> None:
    page.goto(url)
    page.check("input[name=source][value=files]")
    page.set_input_files("#files", DEMO_QUERIES)
    page.fill("#expected_in_database", "60")
    page.click("[type=submit]")
    page.wait_for_selector("body[data-state=done]")
    page.click(f"#f{FEATURE} button.open")
    plot = page.locator(".detail svg.spectrum").first
    plot.wait_for()
    page.evaluate("() => scrollTo(0, 0)")
    peak = plot.locator(".peak.explained").nth(PEAK).bounding_box()
    page.mouse.move(peak["x"], peak["y"] + peak["height"] / 2)
    page.wait_for_timeout(500)
    page.screenshot(path=out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/images/serve-job.png"))
    out = parser.parse_args().out
    command = [sys.executable, "-m", "mzseek", "serve", "--port", str(PORT), "--data-dir"]
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        server = subprocess.Popen([*command, folder])
        try:
            wait_until_ready(server, f"http://127.0.0.1:{PORT}")
            program = shutil.which("chromium") or shutil.which("chromium-browser")
            browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
            view = {"width": WIDTH, "height": HEIGHT}
            take(browser.new_page(viewport=view), f"http://127.0.0.1:{PORT}/", out)
            browser.close()
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
