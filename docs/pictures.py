"""Makes the picture of the report that README.md shows, from the demo: python docs/pictures.py [FILE]

It needs Chromium, and what requirements-dev.txt installs. The time of the run is in the picture, so no two are equal.
"""

import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

PICTURE = Path(__file__).parent / "pictures" / "report.png"
SIZE = {"width": 1200, "height": 680}
"""The first screen of the report, down to its two figures."""
COLOURS = 48
"""As many as keep the smoothed edges of letters; a third of the bytes of all colours."""


def main(picture: Path = PICTURE) -> None:
    karenina = Path(sys.executable).with_name("karenina")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        run = Path(folder, "run")
        subprocess.run([karenina, "demo", "--quiet", "--out", run], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([karenina, "report", run], check=True, stdout=subprocess.DEVNULL)
        program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        take(browser, run / "report.html", picture)
        browser.close()
    print(f"{picture}: {picture.stat().st_size} bytes")


def take(browser: Browser, report: Path, picture: Path) -> None:
    page = browser.new_page(viewport=SIZE)  # type: ignore[arg-type] # a dict of these two keys
    page.goto(report.as_uri())
    taken = Image.open(io.BytesIO(page.screenshot()))
    page.close()
    taken.convert("RGB").quantize(COLOURS).save(picture, optimize=True)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
