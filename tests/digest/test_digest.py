"""The digest against the engine's own counters, and against plain loops over the same facts."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import tomli_w
from pyspark.sql import SparkSession

from testbed import figures
from testbed.digest.digest import Digest, digest_runs, open_runs
from testbed.digest.timeline import BINS
from testbed.packets.headers import LINKTYPE_LINUX_SLL2
from testbed.runs import results
from testbed.runs.parts import COLUMNS
from tests.command_line import CommandLine
from tests.experiments import parsed, run
from tests.packets.captures import file_header

BASE: dict[str, Any] = {
    "name": "small",
    "packets": "full",
    "topology": {"model": "pure-random", "nodes": 8, "edge_probability": 0.4},
    "links": {"delay_ms": [0.0, 30.0], "bandwidth_mbit": 5},
    "workload": {"model": "poisson", "senders": 4, "rate_per_s": 600, "duration_ms": 30},
}
VARIANTS: dict[str, dict[str, Any]] = {
    "overlay": {"protocol": {"name": "overlay"}},
    "timestamp": {"protocol": {"name": "timestamp"}},
    "unicast": {"protocol": {"name": "timestamp", "multicast": "unicast"}},
    "fragments": {
        "protocol": {"name": "timestamp"},
        "workload": {**BASE["workload"], "payload_bytes": 4000},
    },
    "bare": {
        "protocol": {"name": "overlay"},
        "transport": {"framing": "bare"},
        "workload": {**BASE["workload"], "payload_bytes": 2000},
    },
    "lossy": {
        "protocol": {"name": "timestamp"},
        "channel": "reliable",
        "fault": [
            {"kind": "loss", "rate": 0.1},
            {"kind": "duplication", "rate": 0.1},
            {"kind": "reordering", "rate": 0.1},
        ],
    },
    "stuck": {"protocol": {"name": "timestamp"}, "fault": [{"kind": "loss", "rate": 0.1}]},
    "killed": {
        "protocol": {"name": "timestamp"},
        "fault": [{"kind": "crash", "node": 3, "at_ms": 20, "for_ms": 20}],
    },
    "tickets": {
        "protocol": {"name": "cluster", "management": "leases", "round_ms": 40.0},
        "workload": {**BASE["workload"], "settle_ms": 900},
    },
    "packed": {
        "protocol": {"name": "daisy"},
        "workload": {**BASE["workload"], "settle_ms": 300},
    },
    "counters": {"protocol": {"name": "timestamp"}, "packets": "counters"},
}


def simulate(runs: Path, **changes: Any) -> Path:
    return run(parsed(BASE, **changes), runs).path


@pytest.fixture(scope="module")
def digests(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Digest]:
    runs = tmp_path_factory.mktemp("runs")
    paths = [simulate(runs, **variant) for variant in VARIANTS.values()]
    opened, refused = open_runs(paths)
    digests = digest_runs(spark.sparkContext, opened, lambda *_: None)
    assert not refused
    return dict(zip(VARIANTS, digests, strict=True))


def test_the_digest_agrees_with_the_engine(digests: dict[str, Digest]) -> None:
    for name, digest in digests.items():
        assert digest.problems == [], name
        assert digest.summary["disagreements"] == 0
        assert digest.summary["multicasts"] > 20
        assert digest.summary["hops"] > 100
    assert digests["timestamp"].summary.keys() <= figures.table().keys()


def test_what_is_compared_would_differ_if_it_were_wrong(digests: dict[str, Digest]) -> None:
    queues = ("delivery_queue_max", "link_queue_max", "link_queue_bytes_max")
    sums = ("network_load_mean", "network_load_bytes_mean", "control_bytes", "bytes")
    for key in (*queues, *sums):
        assert len({digest.summary[key] for digest in digests.values()}) > 1, key


def test_the_tables_have_the_columns_that_are_documented(digests: dict[str, Digest]) -> None:
    for name, columns in COLUMNS.items():
        table = pd.read_parquet(digests["timestamp"].path / "tables" / f"{name}.parquet")
        assert set(table.columns) == set(columns.split()), name


def test_deliveries_and_queues_are_what_a_loop_over_the_log_finds(
    digests: dict[str, Digest],
) -> None:
    run = results.load(digests["timestamp"].path)
    lines = [
        json.loads(line) for line in (run.path / "events" / "nodes.jsonl").read_text().splitlines()
    ]
    sent: dict[tuple[int, int], int] = {}
    held: dict[tuple[int, int, int], int] = {}
    longest: defaultdict[int, int] = defaultdict(int)
    found = []
    for line in lines:
        name = line["source"], line["seq"]
        key = (line["node"], *name)
        if line["event"] == "send":
            sent[name] = line["t"]
        elif line["event"] == "hold":
            held.setdefault(key, line["t"])
            queue = sum(node == line["node"] for node, *_ in held)
            longest[line["node"]] = max(longest[line["node"]], queue)
        else:
            since = held.pop(key, None)
            found.append((*key, line["t"], line["t"] - sent[name], since))
    assert max(longest.values()) > 1
    ours = run.deliveries.astype(object).where(run.deliveries.notna(), None)
    assert sorted(ours[["node", "source", "seq", "at"]].itertuples(index=False)) == sorted(
        row[:4] for row in found
    )
    by_key = {(r.node, r.source, r.seq): (r.delay, r.held_at) for r in ours.itertuples()}
    assert by_key == {row[:3]: row[4:] for row in found}
    nodes = run.nodes.set_index("node")
    assert {n: q for n, q in nodes.queue_max.items() if q} == longest


def test_messages_join_what_logs_and_packets_say(digests: dict[str, Digest]) -> None:
    run = results.load(digests["fragments"].path)
    messages = run.messages
    assert (messages.destinations == 8).all()
    assert (messages.delivered == 8).all()
    assert (messages.copies == 7).all()
    assert (messages.fragments == 7 * 3).all()
    assert (messages.control == 4 * 8).all()
    assert (messages.bytes == 7 * (32 + 32 + 4000)).all()
    assert messages.hops.sum() == run.summary["hops"]
    assert messages.wire_bytes.sum() == run.summary["wire_bytes"]


def test_the_parts_of_every_delay_add_up(digests: dict[str, Digest]) -> None:
    for name, digest in digests.items():
        run = results.load(digest.path)
        delays = run.delays
        parts = delays.drop(
            columns=["node", "source", "seq", "delay", "hops", "relays", "via", "copy"]
        )
        assert (parts.sum(axis=1) == delays["delay"]).all(), name
        assert len(delays) == run.deliveries["delay"].notna().sum() > 0, name
        assert (delays["unattributed"] == 0).all() == (name != "counters"), name
        assert (len(run.carried) > 0) == (name in ("tickets", "packed")), name
    lossy = results.load(digests["lossy"].path).delays
    assert lossy["reception"].max() > 0


def test_the_timeline_adds_up_to_the_run(digests: dict[str, Digest]) -> None:
    for name in ("timestamp", "overlay"):
        run = results.load(digests[name].path)
        steps = run.timeline
        assert len(steps) == BINS
        hops = run.hops
        assert (steps.packets_mean * steps.width).sum() == pytest.approx(
            (hops.arrived - hops.queued).sum()
        )
        moments = sorted([(t, 1) for t in hops.queued] + [(t, -1) for t in hops.arrived])
        level, top = 0, 0
        for _, step in moments:
            level += step
            top = max(top, level)
        assert steps.packets_max.max() == top
        assert (steps.held_mean * steps.width).sum() == pytest.approx(run.deliveries.held.sum())
        assert steps.deliveries.sum() == run.summary["deliveries"]


def test_the_longest_link_queue_is_what_a_loop_finds(digests: dict[str, Digest]) -> None:
    run = results.load(digests["overlay"].path)
    found = {}
    for link, hops in run.hops.groupby(["tail", "head"]):
        found[link] = max(int(((hops.queued <= q) & (hops.started > q)).sum()) for q in hops.queued)
    ours = run.links.set_index(["tail", "head"]).queue_max
    assert {link: n for link, n in ours.items() if n} == {k: n for k, n in found.items() if n}
    assert max(found.values()) > 3


def test_without_packets_their_figures_are_the_engines(digests: dict[str, Digest]) -> None:
    run = results.load(digests["counters"].path)
    assert len(run.hops) == 0
    assert run.messages.copies.isna().all()
    assert run.summary["hops"] == run.manifest["figures"]["hops"] > 0


def damaged(tmp_path: Path) -> Path:
    path = simulate(tmp_path, **VARIANTS["timestamp"])
    log = path / "events" / "nodes.jsonl"
    whole = log.read_text()
    log.write_text(whole[:-20] + "\n" + '{"node": 99, "event": "send", "t": 1}\nnonsense\n')
    manifest = json.loads((path / "manifest.json").read_text())
    del manifest["figures"]
    manifest["status"] = "running"
    (path / "manifest.json").write_text(json.dumps(manifest))
    return path


def test_what_a_damaged_run_has_is_digested_and_the_rest_is_told(
    spark: SparkSession, tmp_path: Path, testbed: CommandLine
) -> None:
    path = damaged(tmp_path)
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    empty = simulate(tmp_path, **VARIANTS["counters"])
    (empty / "events" / "nodes.jsonl").unlink()
    gone = tmp_path / "gone"
    other, silent, cut = (simulate(tmp_path, **VARIANTS["counters"]) for _ in range(3))
    for its, link_type in ((other, 105), (silent, LINKTYPE_LINUX_SLL2), (cut, LINKTYPE_LINUX_SLL2)):
        (its / "packets" / "capture.pcap").write_bytes(file_header(link=link_type))
        emulation = {"interfaces": {}, "start_unix_ns": 0, "captured": 5 if its == cut else 0}
        (its / "emulation.json").write_text(json.dumps(emulation))
    paths = (path, foreign, gone, empty, other, silent, cut)
    captured = testbed("digest", *paths, status=2)
    assert results.load(path).summary["deliveries"] > 100
    words = captured.err
    assert "3 lines of the event logs cannot be used" in words
    assert "not finished, its status is dead" in words
    assert f"{foreign}/manifest.json: no such file; this is not a run directory" in words
    assert f"{gone}: no such run directory" in words
    assert f"{empty}: no event logs" in words
    assert "the captures are left out" in words
    assert "link type 105" in words
    assert words.count("the captures hold no packet") == 2
    assert f"{cut}: packets/capture.pcap: added since the run" in words
    assert {results.load(run).summary["verdict"] for run in (path, silent, cut)} == {"stale"}
    assert captured.out.count("digested") == 4
    assert not list(tmp_path.rglob("*.part"))


def test_a_run_is_digested_and_reported_unless_told_not_to(
    spark: SparkSession, tmp_path: Path, testbed: CommandLine
) -> None:
    file = tmp_path / "small.toml"
    both = [VARIANTS[name]["protocol"] for name in ("overlay", "timestamp")]
    file.write_text(tomli_w.dumps({**BASE, "protocol": both}))
    captured = testbed("run", file, "--runs", tmp_path / "runs")
    assert captured.err == ""
    pages = sorted((tmp_path / "runs").rglob("report.html"))
    assert len(pages) == 3
    for page in pages:
        assert f"{page}\n" in captured.out
    assert len(results.load(tmp_path / "runs" / "small" / "latest").messages) > 20
