"""Delays of emulated runs: whether their parts add up, and agree with the packets that tshark shows."""

import json
import subprocess
from collections import defaultdict
from pathlib import Path

from pyspark.sql import SparkSession

from testbed.digest.digest import digest_runs, open_runs
from testbed.engines.mininet.plan import host_ip
from testbed.progress import silent
from testbed.runs import results

PARTS = (
    *("propagation", "serialisation", "queueing", "deviation", "retransmission", "relaying"),
    *("reception", "waiting", "held", "unattributed"),
)
ON_LINKS = ["propagation", "serialisation", "queueing", "deviation"]


def digest(path: Path, spark: SparkSession) -> None:
    """Digest a run, which must agree with what its engine counted."""
    sources, refused = open_runs([path])
    (digested,) = digest_runs(spark.sparkContext, sources, silent)
    assert not refused
    assert not digested.problems


def assert_explained(path: Path, deliveries: int, followed: float = 1) -> None:
    """All of the delays of a digested run add up, and tshark sees the packets take as long.

    Through relays that deliver the message themselves, a message can be ``followed`` to its source:
    what part of all at least.
    """
    run = results.load(path)
    delays = run.delays
    assert len(delays) == len(run.deliveries) == deliveries
    assert (delays[[*PARTS]].sum(axis=1) == delays["delay"]).all()
    assert (delays["unattributed"] == 0).all()
    assert (delays["propagation"] > 0).sum() == (delays["node"] != delays["source"]).sum()
    seen = Seen(path)
    copies = {
        (row.node, row.source, row.seq): (int(row.via), int(row.copy))
        for row in delays.dropna(subset=["via"]).itertuples()
    }
    on_links, whole = delays[ON_LINKS].sum(axis=1), 0
    for node, source, seq, told in zip(
        delays["node"], delays["source"], delays["seq"], on_links, strict=True
    ):
        shown, at = 0, node
        while (at, source, seq) in copies:
            via, copy = copies[at, source, seq]
            shown += seen.took(via, at, copy)
            at = via
        whole += at == source
        assert at != source or shown == told, (node, source, seq)
    assert whole >= followed * deliveries


class Seen:
    """The packets of a capture as tshark shows them: when each copy's fragments were where."""

    def __init__(self, path: Path) -> None:
        interfaces = json.loads((path / "emulation.json").read_text())["interfaces"]
        self.at: dict[tuple[str, str, int, int | None], dict[int, int]] = defaultdict(dict)
        for line in self._lines(next((path / "packets").glob("*.pcap"))):
            epoch, interface, source, destination, name, offset = line.split("\t")
            if interface in interfaces:
                tail, head = interfaces[interface]
                where = None if tail is None else head  # None: it has just left its host
                times = self.at[source, destination, int(name, 16), where]
                times.setdefault(int(offset), int(epoch.replace(".", "")))

    def _lines(self, capture: Path) -> list[str]:
        fields = ("frame.time_epoch", "sll.ifindex", "ip.src", "ip.dst", "ip.id", "ip.frag_offset")
        options = [option for field in fields for option in ("-e", field)]
        command = ["tshark", "-r", str(capture), "-o", "ip.defragment:false", "-T", "fields"]
        done = subprocess.run([*command, *options], capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    def took(self, sender: int, receiver: int, copy: int) -> int:
        """How long the fragment of a copy that came last was on its way from host to switch."""
        for to in (host_ip(receiver), "239.0.0.1"):
            if arrived := self.at.get((host_ip(sender), to, copy, receiver)):
                last = max(arrived, key=lambda offset: (arrived[offset], offset))
                return arrived[last] - self.at[host_ip(sender), to, copy, None][last]
        raise AssertionError(f"tshark shows no copy {copy} from {sender} to {receiver}")
