"""The figures of an emulated run, from its captures and its hosts' counters."""

from dataclasses import asdict, astuple, replace
from typing import Any

from testbed.check.fidelity import UnjudgeableSpans, judge, replay
from testbed.experiment.network import Network
from testbed.node.meter import Meter, Sent, summarise
from testbed.packets.pcap import read_packets
from testbed.protocols import Protocol
from testbed.runs.directory import RunDirectory


def summarise_emulation(
    protocol: type[Protocol], network: Network, directory: RunDirectory
) -> dict[str, Any]:
    """The summary, as the simulator gives it; how true the network was goes into the manifest."""
    raw = directory.emulation
    packets = read_packets(directory.packets)
    spans = UnjudgeableSpans(raw["conditions"], raw["start_unix_ns"])
    carried, errors, overtaken = replay(packets, directory.interfaces, network.graph, spans)
    carried = replace(carried, **raw["links"])
    dropped = raw["capture_dropped"] + sum(raw["dropped"].values())
    fidelity = judge(errors, dropped, carried.hops - len(errors), overtaken)
    malformed = sum(host["malformed"] for host in raw["hosts"])
    directory.manifest["fidelity"] = asdict(fidelity)
    directory.manifest["start_unix_ns"] = raw["start_unix_ns"]
    directory.manifest["counters"] = {
        "captured": raw["captured"],
        "capture_dropped": raw["capture_dropped"],
        **raw["dropped"],
        "upcalls": raw["upcalls"],
        "warm_ups_missing": raw["warm_ups_missing"],
        "malformed": malformed,
        "cut_short": int(raw["cut_short"]),
    }
    counts = [Sent(**host["sent"]) for host in raw["hosts"]]
    sent = Sent(*(sum(column) for column in zip(*map(astuple, counts), strict=True)))
    meter = Meter.merged(host["meter"] for host in raw["hosts"])
    end = int(packets.time.max()) - raw["start_unix_ns"] if len(packets) else 0
    summary = summarise(protocol, network.processes, end, meter, sent, carried)
    del summary["packets_duplicated"]  # netem does not count them
    return {**summary, "malformed": malformed, "fidelity": fidelity.verdict}
