"""What the reproduction of Friedman & Manor runs and measures."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from scripts.reproductions.running import EXPERIMENTS, Row
from testbed.experiment import Experiment, parse, read_document

FILE = EXPERIMENTS / "friedman.toml"
OVERLAY, NETWORK, UNICAST = PROTOCOLS = ("overlay", "network", "unicast")
TABLES = {
    OVERLAY: {"name": "overlay"},
    NETWORK: {"name": "timestamp", "multicast": "network"},
    UNICAST: {"name": "timestamp", "multicast": "unicast"},
}
LABELS = {OVERLAY: "Overlay", NETWORK: "Timestamp, tree", UNICAST: "Timestamp, n − 1 copies"}
DATA = (0, 100, 1000)
# The edge probability for each size: the paper has 0.01 to 0.04, and it must fall with the size.
PROBABILITIES: dict[int, float] = {
    topology["nodes"]: topology["edge_probability"] for topology in read_document(FILE)["topology"]
}
CUBE, HYPERCAST, CLIQUE = OVERLAYS = ("hypercube", "hypercast", "complete")
ODD_SIZE, ODD_PROBABILITY = 65, 0.08  # 2^6 + 1 processes, where the overlays differ most
FIGURES = (
    *(
        "multicasts",
        "delay_ms_mean",
        "delay_ms_max",
        "messages",
        "bytes",
        "control_bytes",
        "copies",
        "deliveries",
    ),
    *("hops", "delivery_queue_mean", "delivery_queue_max", "network_load_mean", "link_queue_max"),
    *("network_load_bytes_mean", "link_queue_bytes_max"),
)

KEYS = {  # what claims call the figures of runs
    "mean delay": "delay_ms_mean",
    "longest delay": "delay_ms_max",
    "mean queue": "delivery_queue_mean",
    "longest queue": "delivery_queue_max",
    "mean load in bytes": "network_load_bytes_mean",
    "mean load in packets": "network_load_mean",
    "longest link queue in bytes": "link_queue_bytes_max",
    "longest link queue in packets": "link_queue_max",
}


class Point(NamedTuple):
    """What is run; a topology of its own for each seed, the same for all protocols."""

    protocol: str
    nodes: int
    data: int = 0
    duration_ms: float = 5.0
    probability: float = 0.0  # 0: that of the size
    overlay: str = CUBE
    carried: bool = False  # a load that the links can carry, instead of the paper's bursts
    engine: str = "simulate"


class Scale(NamedTuple):
    """How much is run."""

    sizes: Sequence[int]
    duration_ms: float
    durations: Sequence[float]
    probabilities: Sequence[float]
    engine: str = "simulate"

    def main(self) -> list[Point]:
        """The points of the paper's figures."""
        return [
            Point(protocol, n, data, self.duration_ms)
            for n in self.sizes
            for data in DATA
            for protocol in PROTOCOLS
        ]

    def carried(self) -> list[Point]:
        """The points under a load that the links can carry."""
        return [Point(NETWORK, n, 0, 1000.0, carried=True) for n in self.sizes]

    def scanned(self) -> list[Point]:
        """How long senders send: both protocols in the smallest system, Timestamp in a larger one."""
        small, large = self.sizes[0], self.sizes[min(2, len(self.sizes) - 1)]
        both = [Point(p, small, 0, ms) for p in (OVERLAY, NETWORK) for ms in self.durations]
        return both + [Point(NETWORK, large, 0, ms) for ms in self.durations]

    def edges(self) -> list[Point]:
        """Other edge probabilities, in the third size at most."""
        n = self.sizes[min(2, len(self.sizes) - 1)]
        return [
            Point(protocol, n, data, self.duration_ms, probability)
            for probability in self.probabilities
            for data in DATA
            for protocol in (OVERLAY, NETWORK)
        ]

    def overlays(self) -> list[Point]:
        """Other overlays, where they differ most."""
        return [Point(OVERLAY, ODD_SIZE, 0, 1.0, ODD_PROBABILITY, overlay) for overlay in OVERLAYS]

    def points(self) -> list[Point]:
        """All points that are simulated."""
        points = [
            *self.main(),
            *self.carried(),
            *self.scanned(),
            *self.edges(),
            *self.overlays(),
        ]
        return [*dict.fromkeys(points)]

    def emulated(self) -> list[Point]:
        """The points of the paper's figures whose packets are looked at, too.

        Not those with n - 1 copies: switches would have to know the flows of n² pairs.
        """
        points = [point for point in self.main() if point.protocol != UNICAST]
        return [] if self.engine == "simulate" else [p._replace(engine=self.engine) for p in points]


def experiment(point: Point, seed: int, framing: str) -> Experiment:
    """One run of a point."""
    base = read_document(FILE)
    workload: dict[str, Any] = {**base["workload"], "payload_bytes": point.data}
    if point.carried:
        workload = {"model": "poisson", "rate_per_s": 40}
    document = {
        **base,
        "engine": point.engine,
        "seed": seed,
        "protocol": TABLES[point.protocol],
        "overlay": {"model": point.overlay},
        "topology": {
            "model": "pure-random",
            "nodes": point.nodes,
            "edge_probability": point.probability or PROBABILITIES[point.nodes],
        },
        "transport": {"framing": framing},
        "workload": {**workload, "duration_ms": point.duration_ms},
    }
    if point.protocol != OVERLAY:
        del document["overlay"]
    return parse(document, FILE)[0]


Seeds = tuple[float, ...]  # one number for each seed
Measured = dict[str, Seeds]  # by figure
Found = dict[Point, Measured]


def measured(rows: Iterable[Row]) -> Measured:
    """The figures of a point's runs."""
    rows = [*rows]
    return {figure: tuple(float(row[figure]) for row in rows) for figure in FIGURES}
