"""The study's page at 1,000 finished trials: its size, how long it takes to write and to open.

The run directories are made up but of the real form (see many_runs.py): the specs are those of
several experiments' published grids. The page is opened in Chromium, several times, until its
scorecard can be filtered; then a chapter is opened.

    python benchmarks/study_page.py [--runs 1000] [--keep DIRECTORY] [--json]

Limits: under 5 MB, open in under 2 s. Needs the extra `browser`, and Chromium.
"""

import argparse
import json
import resource
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from many_runs import finish

from pernn.lab.evidence import make_study
from pernn.lab.store import list_runs, save_sweep
from pernn.lab.sweeps import plan_sweep

SWEEPS = {
    ("vocabulary_size", "paper"): 560,
    ("sorting", "small"): 180,
    ("sorting", "paper"): 160,
    ("input_length", "paper"): 100,
}
"""Experiment, scale → how many of its trials, of 1,000 in all, are finished."""


def make_results(root: Path, num_runs: int) -> None:
    """Write about that many finished trials, spread over the sweeps."""
    specs = {}
    for (experiment, scale), share in SWEEPS.items():
        plan = plan_sweep(experiment, scale, {})
        save_sweep(root, plan.sweep)
        count = round(share * num_runs / sum(SWEEPS.values()))
        specs |= dict([one for one in plan.specs.items() if one[0] not in specs][:count])
    for spec in specs.values():
        finish(root, spec)


def time_opening(page: Path, times: int = 5) -> dict[str, float]:
    """Return nodes, and seconds until the page can be used and until a chapter is drawn."""
    from playwright.sync_api import sync_playwright

    opened, chapters = [], []
    with sync_playwright() as playing:
        browser = playing.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for _ in range(times):
            tab = browser.new_page()
            tab.set_default_timeout(600_000)
            began = time.perf_counter()
            tab.goto(page.as_uri())
            tab.fill("#words", "encoding")
            opened.append(time.perf_counter() - began)
            began = time.perf_counter()
            num_nodes = tab.evaluate("document.querySelectorAll('*').length")
            tab.locator("#sweep-1 > .chapter > summary").click()
            tab.locator("#sweep-1 svg").first.wait_for()
            chapters.append(time.perf_counter() - began)
            tab.close()
        browser.close()
    medians = {"opened_s": statistics.median(opened), "chapter_s": statistics.median(chapters)}
    return {"nodes": num_nodes, **medians}


def main() -> None:
    """Make the results, write and open the page, and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--keep", type=Path, help="results directory that is kept, and used again")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = options.keep or Path(folder)
        if not list_runs(root):
            make_results(root, options.runs)
        page, said = root / "study.html", list[str]()
        began = time.process_time()
        make_study(root, page, said.append)
        found: dict[str, Any] = {
            "trials": len(list_runs(root)),
            "written_cpu_s": time.process_time() - began,
            "megabytes": page.stat().st_size / 1e6,
            "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
            **time_opening(page),
        }
    assert not said, said
    if options.json:
        print(json.dumps(found))
    else:
        for name, value in found.items():
            print(f"{name:16} {value:10.2f}")


if __name__ == "__main__":
    main()
