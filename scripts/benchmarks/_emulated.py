"""An emulated run with a million packets for benchmarks, and the same several times as long."""

import json
import shutil
from pathlib import Path

import numpy as np

from testbed.experiment import parse
from testbed.packets.headers import (
    IP_HEADER,
    LINK_TYPES,
    LINKTYPE_LINUX_SLL2,
    UDP_HEADER,
    WIRE_HEADER,
    rows,
)
from testbed.packets.pcap import FILE_HEADER, RECORD, open_capture
from testbed.progress import silent
from testbed.run import run_experiment
from testbed.runs.directory import RunDirectory

DOCUMENT = {
    "name": "bench-digest",
    "engine": "virtual",
    "protocol": {"name": "overlay"},
    "topology": {"model": "pure-random", "nodes": 60, "edge_probability": 0.1},
    "links": {"delay_ms": [0.0, 5.0], "bandwidth_mbit": 100},
    "workload": {"model": "poisson", "senders": 30, "rate_per_s": 200, "duration_ms": 200},
}
SEQ = 100_000  # more than the messages of one process
BEFORE_WIRE = (
    RECORD.itemsize
    + LINK_TYPES[LINKTYPE_LINUX_SLL2].header.itemsize
    + IP_HEADER.itemsize
    + UDP_HEADER.itemsize
)


def emulate(runs: Path) -> Path:
    """Overlay on 60 nodes, 1.26 million packets; none is a fragment."""
    return run_experiment(parse(DOCUMENT, Path("bench-digest"))[0], runs, silent).path


def repeated(run: Path, times: int, to: Path) -> Path:
    """A run that does so often what this one does, with new messages, one second after the other."""
    source = RunDirectory(run)
    seconds = int(source.manifest["figures"]["duration_ms"] / 1000) + 1
    for directory in ("events", "packets"):
        (to / directory).mkdir(parents=True)
    for name in ("experiment.toml", "network.json", "emulation.json"):
        shutil.copy(run / name, to)
    figures = {"duration_ms": 1000.0 * seconds * times}
    manifest = {**source.manifest, "figures": figures}
    del manifest["evidence"]
    (to / "manifest.json").write_text(json.dumps(manifest))
    for turn in range(times):
        for capture in source.captures:
            _later(capture, to / "packets" / f"{turn:02}-{capture.name}", turn, turn * seconds)
        for log in source.event_logs:
            lines = map(json.loads, log.read_text().splitlines())
            with (to / "events" / log.name).open("a") as file:
                for line in lines:
                    line["t"] += turn * seconds * 1_000_000_000
                    if "seq" in line:
                        line["seq"] += turn * SEQ
                    file.write(json.dumps(line, separators=(",", ":")) + "\n")
    return to


def _later(capture: Path, to: Path, turn: int, seconds: int) -> None:
    """A copy of a capture whose packets are so much later and carry later messages."""
    file = open_capture(capture)
    data = file.read(FILE_HEADER.size, file.size - FILE_HEADER.size)
    at, _ = file.walk(data)
    for start, layout, field, more in (
        (at, RECORD.newbyteorder(file.order), "seconds", seconds),
        (at + BEFORE_WIRE, WIRE_HEADER, "seq", turn * SEQ),
    ):
        headers = rows(data, start, layout)
        headers[field] += more
        size = layout.itemsize
        everywhere = np.ndarray(len(data) - size + 1, f"V{size}", data, 0, (1,))
        everywhere[start] = headers.view(f"V{size}")
    with capture.open("rb") as header, to.open("wb") as copy:
        copy.write(header.read(FILE_HEADER.size) + data[: file.size - FILE_HEADER.size])
