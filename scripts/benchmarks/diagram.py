"""Milliseconds a frame of the space-time diagram, in headless Chromium, as one moves about in it.

A simulated run of about so many events is digested and its page opened. Each frame moves or zooms,
draws everything anew and reads a pixel back, so that the time is that of the whole picture and not of
commands that are still to be carried out. "Chosen" is with a message pinned and its way drawn.
"""

import os
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from scripts import parser
from scripts.benchmarks import timed
from testbed.digest import session
from testbed.digest.digest import digest_runs, open_runs
from testbed.experiment import parse
from testbed.progress import silent
from testbed.report.page import write_page
from testbed.run import run_experiment
from testbed.runs import results
from tests.report.browser import Browser

PROCESSES = 50
FRAMES = 60
MEASURED = """((act) => {
    const { diagram } = document.querySelector(".spacetime"), times = [];
    const { first, last } = diagram.history;
    for (let frame = 0; frame < %d; frame++) {
        const begun = performance.now();
        act(diagram, frame);
        diagram.draw();
        diagram.context.getImageData(diagram.canvas.width >> 1, diagram.canvas.height >> 1, 1, 1);
        times.push(performance.now() - begun);
    }
    return times;
})"""
MOVES = {
    "whole run": "(d, i) => { if (!i) d.fit(); d.pan(i % 2 ? 3 : -3, 0); }",
    "zooming in": "(d, i) => { if (!i) d.fit(); d.zoom(0.9); }",
    "moving, a tenth in view": "(d, i) => { if (!i) { d.fit(); d.zoom(0.1); } d.pan(40, 0); }",
    "chosen": "(d, i) => { if (!i) { d.fit(); d.pinned = 0; d.process = d.history.slowest(0); }"
    " d.pan(i % 2 ? 3 : -3, 0); }",
}


def main() -> None:
    """Make a run and its page, and print the median and the slowest of the frames."""
    command = parser("bench diagram", __doc__)
    command.add_argument("--events", type=int, default=100_000, help="of the run, about")
    options = command.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-diagram-") as name:
        page = page_of(Path(name), options.events)
        print(
            f"page: {page.stat().st_size / 1e6:.1f} MB; load {os.getloadavg()[0]:.1f}", flush=True
        )
        with Browser() as browser:
            seconds, _ = timed(lambda: browser.open(page))
            count = browser.evaluate(
                "document.querySelector('.spacetime').diagram.history.kind.length"
            )
            print(f"{count:,} events shown, opened in {seconds:.1f} s")
            for what, act in MOVES.items():
                times: list[float] = browser.evaluate(f"{MEASURED % FRAMES}({act})")
                print(f"  {what:<26} median {median(times):6.1f} ms, slowest {max(times):6.1f} ms")


def page_of(directory: Path, events: int) -> Path:
    """The page of a run of about so many events, without plots."""
    sends = events / (PROCESSES * 1.2)
    document: dict[str, Any] = {
        "name": "diagram",
        "engine": "simulate",
        "packets": "full",
        "protocol": {"name": "timestamp"},
        "topology": {"model": "pure-random", "nodes": PROCESSES, "edge_probability": 0.1},
        "links": {"delay_ms": [0.0, 30.0], "bandwidth_mbit": 1000},
        "workload": {
            "model": "poisson",
            "senders": PROCESSES,
            "rate_per_s": 200,
            "duration_ms": sends / PROCESSES * 5,
        },
    }
    (experiment,) = parse(document, Path("diagram.toml"))
    run = run_experiment(experiment, directory, silent)
    sources, _ = open_runs([run.path])
    with session("local[*]", small=True) as spark:
        digest_runs(spark.sparkContext, sources, silent)
    digested = results.load(run.path)
    print(f"{len(digested.events):,} events, {len(digested.hops):,} hops", flush=True)
    page = directory / "page.html"
    seconds, text = timed(lambda: write_page([digested], ["timestamp"], [], {}))
    page.write_text(text, encoding="utf-8")
    print(f"page written in {seconds:.1f} s", flush=True)
    return page


if __name__ == "__main__":
    main()
