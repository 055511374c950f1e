"""RST, KS and KS' alone: the time that a copy of a message takes, and what it carries.

The model is that of Chandra, Gambhire & Kshemkalyani 2004, section 3: every process multicasts after
exponential times of mean MIMT, to one other process or (a fraction M/T of them) to a set of uniform
size; every copy takes an exponential time of mean MTT; channels are point to point and FIFO. Only the
protocol objects run here, on a heap: no network, no event log. Times are processor times.

What a copy carries is given as per cent of n², in four ways of counting the entries E of its log and
their destinations D: Fig. 2 of the paper (3 integers for each entry, and D), the same without
numdests (2 for each), and for KS' one clock for each entry or for each entry and each destination.
"""

import heapq
import math
import random
import time
from collections import Counter
from itertools import count
from typing import NamedTuple

from scripts import parser
from testbed.protocols.base import Count, Effects, Place, Protocol, Sample, Send
from testbed.protocols.ks import KS
from testbed.protocols.ks_prime import KSPrime
from testbed.protocols.rst import RST

PROTOCOLS: dict[str, type[Protocol]] = {p.name: p for p in (RST, KS, KSPrime)}


class Setting(NamedTuple):
    """Means in milliseconds, and the fraction of sends that are multicasts."""

    mtt: float
    mimt: float
    multicasts: float


SETTINGS = {
    "S1": Setting(50, 100, 0.1),
    "S2": Setting(400, 100, 0.1),
    "S3": Setting(50, 1600, 0.1),
    "S4": Setting(50, 400, 0.99),
}


class Result(NamedTuple):
    """What was counted after the warm-up, and how long a copy took from the start on."""

    counted: Counter[str]
    copies: int
    us_per_copy: float
    seconds: float

    @property
    def log_integers(self) -> float:
        """The mean size of a log."""
        return self.counted["log_integers"] / self.counted["logs"]

    def percentages(self, nodes: int) -> list[float]:
        """What a copy carries, in the four ways of counting."""
        fig2, entries, destinations = (
            self.counted[name] / self.copies
            for name in ("control_integers", "control_entries", "control_destinations")
        )
        array = nodes**2 / 32
        ways = [fig2, fig2 - entries, array + entries, array + entries + destinations]
        return [100 * integers / nodes**2 for integers in ways]


class Model:
    """Processes that send to each other on a heap of times."""

    def __init__(self, protocol: type[Protocol], nodes: int, setting: Setting, seed: int) -> None:
        self.rng = random.Random(seed)
        self.nodes = nodes
        self.setting = setting
        self.protocols = [protocol(Place(me, nodes)) for me in range(nodes)]
        self.heap: list[tuple[float, int, int, int, object]] = []
        self.order = count()
        self.last_arrival = [[0.0] * nodes for _ in range(nodes)]  # the paper's LM
        self.counted: Counter[str] = Counter()
        self.copies = 0

    def run(self, messages: int, warm_up: int) -> Result:
        """Send this number of multicasts, and receive everything that is still on its way."""
        for me in range(self.nodes):
            self.push(self.draw(self.setting.mimt), me, me, None)
        begun = time.process_time()
        sent = copies_before = 0
        while self.heap:
            now, _, me, sender, message = heapq.heappop(self.heap)
            if message is not None:
                self.perform(me, self.protocols[me].receive(message, sender, 0), now)
            elif sent < messages:
                if sent == warm_up:
                    self.counted.clear()
                    copies_before = self.copies
                sent += 1
                destinations = self.destinations(me)
                self.perform(me, self.protocols[me].multicast(b"", destinations, 0), now)
                self.push(now + self.draw(self.setting.mimt), me, me, None)
        seconds = time.process_time() - begun
        copies = self.copies - copies_before
        return Result(self.counted, copies, 1e6 * seconds / self.copies, seconds)

    def draw(self, mean: float) -> float:
        """An exponential time of that mean."""
        return self.rng.expovariate(1 / mean)

    def destinations(self, me: int) -> frozenset[int]:
        """One other process, or a set of them."""
        size = 1
        if self.rng.random() < self.setting.multicasts:
            size = self.rng.randint(1, self.nodes - 1)
        return frozenset(self.rng.sample([p for p in range(self.nodes) if p != me], size))

    def push(self, at: float, me: int, sender: int, message: object) -> None:
        """Schedule that a message arrives, or that a process multicasts."""
        heapq.heappush(self.heap, (at, next(self.order), me, sender, message))

    def perform(self, me: int, effects: Effects, now: float) -> None:
        """Let copies travel and counters count; ignore what is for the application."""
        last = self.last_arrival[me]
        for effect in effects:
            if isinstance(effect, Send):
                self.copies += len(effect.peers)
                for peer in effect.peers:
                    at = now + self.draw(self.setting.mtt)
                    last[peer] = at if at >= last[peer] else last[peer] + 1
                    self.push(last[peer], peer, me, effect.message)
            elif isinstance(effect, Count):
                self.counted[effect.name] += effect.amount
            elif isinstance(effect, Sample) and "log_integers" in effect.values:
                self.counted["log_integers"] += int(effect.values["log_integers"])
                self.counted["logs"] += 1


def main() -> None:
    """Run each protocol in each setting with each number of processes."""
    command = parser("bench ks", __doc__)
    command.add_argument("--nodes", type=int, nargs="+", default=[10, 20, 40])
    command.add_argument("--settings", nargs="+", choices=SETTINGS, default=[*SETTINGS])
    command.add_argument("--protocols", nargs="+", choices=PROTOCOLS, default=["ks"])
    command.add_argument("--messages", type=int, default=3000, help="multicasts, warm-up included")
    command.add_argument("--warm-up", type=int, default=1000)
    command.add_argument("--seed", type=int, default=1)
    options = command.parse_args()
    print(f"{'protocol':<10}{'':>3}{'n':>5}  {'counted':>8}{'2E+D':>8}{'E':>8}{'E+D':>8}", end="")
    print(f"{'log integers':>15}{'us/copy':>10}{'seconds':>10}")
    for name in options.protocols:
        for setting in options.settings:
            results = []
            for nodes in options.nodes:
                model = Model(PROTOCOLS[name], nodes, SETTINGS[setting], options.seed)
                results.append(model.run(options.messages, options.warm_up))
                ways = 4 if name == KS.name else 1
                percentages = results[-1].percentages(nodes)[:ways]
                show(f"{name:<10}{setting:>3}{nodes:>5}", percentages, results[-1])
            if len(results) > 1:
                print(f"{'':>20}time grows as (log size)^{growth(results):.2f}", flush=True)


def show(title: str, percentages: list[float], result: Result) -> None:
    """Print one line of the table."""
    ways = "".join(f"{percentage:>7.1f}%" for percentage in percentages)
    print(f"{title}  {ways:<32}{result.log_integers:>15.0f}", end="")
    print(f"{result.us_per_copy:>10.1f}{result.seconds:>10.1f}", flush=True)


def growth(results: list[Result]) -> float:
    """The power of the log's size with which time grows, from the first to the last."""
    few, many = results[0], results[-1]
    slower = math.log(many.us_per_copy / few.us_per_copy)
    return slower / math.log(many.log_integers / few.log_integers)


if __name__ == "__main__":
    main()
