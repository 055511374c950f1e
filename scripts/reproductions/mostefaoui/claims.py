"""What Mostefaoui & Raynal claim, and the rules by which it is judged."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from scripts.reproductions.claims import Claim, Finding, all_of, any_of, judges
from scripts.reproductions.intervals import PAIRED, Interval, is_less, less, shown
from scripts.reproductions.mostefaoui.points import (
    BSS,
    LOCK_STEP,
    ONE,
    ONE_GROUP,
    PANELS,
    PLAIN,
    TIMER_MS,
    Where,
)

Found = Mapping[Where, Any]
FEW = 3  # a timer of 10 ms spans four messages of the busy sender, whose resynchs become one
VARIED = ("groups", "size", "overlap", "senders", "interval")


@judges(
    "bytes of a stamp: M–R, one integer and BSS with 2 to 16 groups of 6",
    "exactly 4|G|, 4 and 4Σ|g| with every seed, since sizes do not vary",
)
def stamps(found: Found) -> Finding:
    """A stamp takes 4|G| bytes, 4 with one integer, and 4Σ|g| under BSS."""
    answers, words = [], []
    for k in map(int, PANELS["groups"].values):
        sizes = {PLAIN: 4 * k, ONE: 4, BSS: 4 * 6 * k}
        its = {protocol: found[Where("groups", str(k), protocol)].stamp for protocol in sizes}
        answers += [Interval.of(its[p]).within(size, size) for p, size in sizes.items()]
        words.append("/".join(f"{its[p][0]:.0f}" for p in sizes))
    return Finding(" ".join(words), all_of(answers))


@judges("{figure}: {points}", "exactly 0 with every seed, since the paper says none")
def is_none(found: Found, figure: str, *points: Where) -> Finding:
    """There is nothing of something at these points."""
    seeds = [getattr(found[point], figure) for point in points]
    holds = all_of([Interval.of(each).within(0, 0) for each in seeds])
    return Finding(f"at most {max(map(max, seeds)):g}", holds)


@judges("ms added by BSS at every point", "exactly 0 with every seed, since the paper says none")
def bss_adds_nothing(found: Found) -> Finding:
    """BSS delivers at the earliest moment."""
    return is_none("added", *(where for where in found if where.protocol == BSS))(found)


@judges("{figure} of M–R, panel {panel}, from each to the next: {values}", PAIRED)
def grows(found: Found, figure: str, panel: str, *values: str) -> Finding:
    """A figure of M–R grows from each of these values to the next."""
    points = [Where(panel, value, PLAIN) for value in values]
    words = ", ".join(shown(getattr(found[point], figure)) for point in points)
    answers = [less(found, figure, one, other) for one, other in pairwise(points)]
    return Finding(words, all_of(answers))


@judges(
    f"resynchs sent, panel {{panel}}: without a timer > {{factor}} × with {TIMER_MS:g} ms",
    f"{PAIRED}; for one busy sender the factor is {FEW}: of its four messages in {TIMER_MS:g} ms one "
    "alone is answered",
)
def timer_saves(found: Found, panel: str, factor: float) -> Finding:
    """With the timer fewer resynchs are sent, by this factor at least."""
    plain, timer = (found[Where(panel, ms, PLAIN)].resynchs_sent for ms in ("0", f"{TIMER_MS:g}"))
    ahead = [a - factor * b for a, b in zip(plain, timer, strict=True)]
    return Finding(f"{shown(plain)} → {shown(timer)}", Interval.of(ahead).above(0))


@judges(
    "M–R against BSS, panel {panel}: control bytes a copy at one place at least, delay at all",
    f"{PAIRED}; for the bytes one yes is enough, for the delay one no is a no",
)
def trade_off(found: Found, panel: str) -> Finding:
    """M–R, resynchs included, takes fewer bytes than BSS somewhere, and delivers later everywhere."""
    values = PANELS[panel].values
    both = {v: (Where(panel, v, PLAIN), Where(panel, v, BSS)) for v in values}
    fewer = {v: less(found, "control", mr, bss) for v, (mr, bss) in both.items()}
    later = [less(found, "delay", bss, mr) for mr, bss in both.values()]
    where = ", ".join(v for v, answer in fewer.items() if answer) or "none"
    words = f"fewer bytes at {where}; later at {later.count(True)} of {len(later)}"
    return Finding(words, all_of([any_of([*fewer.values()]), *later]))


@judges(
    f"{{figure}}: {{one}} < {{other}} at every place of the panels {', '.join(VARIED)}",
    f"{PAIRED}; one no is a no",
)
def everywhere(found: Found, figure: str, one: str, other: str) -> Finding:
    """One protocol has less of something than another, in all panels."""
    answers = [
        less(found, figure, Where(p, v, one), Where(p, v, other))
        for p in VARIED
        for v in PANELS[p].values
        if Where(p, v, one) in found
    ]
    return Finding(f"at {answers.count(True)} of {len(answers)} points", all_of(answers))


SYNCHRONY = [value for value in PANELS["synchrony"].values if value != ONE_GROUP]
CLAIMS: tuple[Claim[Found], ...] = (
    Claim("§ 5.2", "stamps of 4|G| bytes, one integer: 4, BSS: 4Σ|g|", stamps()),
    Claim("§ 5.1", "BSS delivers as early as possible (ms added)", bss_adds_nothing()),
    Claim("§ 3.5", "in lock-step no resynch is sent",
          is_none("resynchs_sent", Where("synchrony", LOCK_STEP, PLAIN))),
    Claim("§ 5.1", "in lock-step deliveries are optimal: one group (ms added)",
          is_none("added", Where("synchrony", ONE_GROUP, PLAIN))),
    Claim("§ 5.1", "… and with several groups (ms added)",
          is_none("added", Where("synchrony", LOCK_STEP, PLAIN))),
    Claim("§ 5.1", "the more synchronous, the nearer to optimal (ms added)",
          grows("added", "synchrony", *SYNCHRONY)),
    Claim("§ 3.5", "a timer decreases the number of resynchs", timer_saves("timer", 1)),
    Claim("§ 3.5", f"… with one busy sender at least {FEW} times", timer_saves("timer-one", FEW)),
    Claim("§ 3.5", "a longer timer delays deliveries (ms)",
          grows("delay", "timer", *PANELS["timer"].values)),
    *(Claim("§ 5.2", f"trade-off, {PANELS[panel].title}", trade_off(panel)) for panel in VARIED),
    Claim("§ 5.2", "M–R keeps less than BSS", everywhere("memory", PLAIN, BSS)),
    Claim("§ 5.2", "one integer: more resynchs than M–R", everywhere("resynchs", PLAIN, ONE)),
    Claim("§ 5.2", "one integer: later deliveries than M–R", everywhere("delay", PLAIN, ONE)),
    *(Claim("§ 5.2", f"the network multicasts: fewer links crossed, {protocol}",
            is_less("hops", Where("multicast", "network", protocol),
                    Where("multicast", "sender", protocol)))
      for protocol in PANELS["multicast"].protocols),
)  # fmt: skip
