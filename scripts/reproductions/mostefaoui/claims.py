"""What Mostefaoui & Raynal claim, and the judges: by 95 % confidence intervals over seeds."""

from itertools import pairwise

from scripts.reproductions import Claim, Finding, curried
from scripts.reproductions.intervals import Interval, all_of, any_of, is_less, less, shown
from scripts.reproductions.mostefaoui.points import (
    BSS,
    LOCK_STEP,
    ONE,
    ONE_GROUP,
    PANELS,
    PLAIN,
    TIMER_MS,
    Found,
    Where,
)

FEW = 3  # times fewer resynchs, with a timer and one busy sender
VARIED = ("groups", "size", "overlap", "senders", "interval")


def stamps(found: Found) -> Finding:
    """A stamp takes 4|G| bytes, 4 with one integer, and 4Σ|g| under BSS."""
    answers, words = [], []
    for k in map(int, PANELS["groups"].values):
        sizes = {PLAIN: 4 * k, ONE: 4, BSS: 4 * 6 * k}
        its = {protocol: found["groups", str(k), protocol].stamp for protocol in sizes}
        answers += [Interval.of(its[p]).within(size, size) for p, size in sizes.items()]
        words.append("/".join(f"{its[p][0]:.0f}" for p in sizes))
    return Finding(" ".join(words), all_of(answers))


@curried
def is_none(found: Found, figure: str, *points: Where) -> Finding:
    """There is nothing of something at these points."""
    seeds = [getattr(found[point], figure) for point in points]
    most = max(map(max, seeds))
    return Finding(f"at most {most:g}", all_of([Interval.of(each).within(0, 0) for each in seeds]))


def bss_adds_nothing(found: Found) -> Finding:
    """BSS delivers at the earliest moment."""
    finding: Finding = is_none("added", *(where for where in found if where[2] == BSS))(found)
    return finding


@curried
def grows(found: Found, figure: str, panel: str, *values: str) -> Finding:
    """A figure of M–R grows from each of these values to the next."""
    points = [(panel, value, PLAIN) for value in values]
    words = ", ".join(shown(getattr(found[point], figure)) for point in points)
    answers = [less(found, figure, one, other) for one, other in pairwise(points)]
    return Finding(words, all_of(answers))


@curried
def timer_saves(found: Found, panel: str, factor: float) -> Finding:
    """With the timer fewer resynchs are sent, by this factor at least."""
    plain, timer = (found[panel, ms, PLAIN].resynchs_sent for ms in ("0", f"{TIMER_MS:g}"))
    ahead = [a - factor * b for a, b in zip(plain, timer, strict=True)]
    return Finding(f"{shown(plain)} → {shown(timer)}", Interval.of(ahead).above(0))


@curried
def trade_off(found: Found, panel: str) -> Finding:
    """M–R, resynchs included, takes fewer bytes than BSS somewhere, and delivers later everywhere."""
    values = PANELS[panel].values
    both = {v: ((panel, v, PLAIN), (panel, v, BSS)) for v in values}
    fewer = {v: less(found, "control", mr, bss) for v, (mr, bss) in both.items()}
    later = [less(found, "delay", bss, mr) for mr, bss in both.values()]
    where = ", ".join(v for v, answer in fewer.items() if answer) or "none"
    words = f"fewer bytes at {where}; later at {later.count(True)} of {len(later)}"
    return Finding(words, all_of([any_of([*fewer.values()]), *later]))


@curried
def everywhere(found: Found, figure: str, one: str, other: str) -> Finding:
    """One protocol has less of something than another, in all panels."""
    places = [(p, v) for p in VARIED for v in PANELS[p].values if (p, v, one) in found]
    if not places:
        raise KeyError(figure)
    answers = [less(found, figure, (*place, one), (*place, other)) for place in places]
    return Finding(f"at {answers.count(True)} of {len(answers)} points", all_of(answers))


def is_less_here(figure: str, one: Where, other: Where) -> Claim[Found]:
    """Copies made by the network cost less."""
    said = ("5.2", f"the network multicasts: fewer links crossed, {one[2]}")
    return Claim(said, is_less(figure, one, other))


SYNCHRONY = [value for value in PANELS["synchrony"].values if value != ONE_GROUP]
CLAIMS: tuple[Claim[Found], ...] = (
    Claim(("5.2", "stamps of 4|G| bytes, one integer: 4, BSS: 4Σ|g|"), stamps),
    Claim(("5.1", "BSS delivers as early as possible (ms added)"), bss_adds_nothing),
    Claim(("3.5", "in lock-step no resynch is sent"),
          is_none("resynchs_sent", ("synchrony", LOCK_STEP, PLAIN))),
    Claim(("5.1", "… and deliveries are optimal: one group (ms added)"),
          is_none("added", ("synchrony", ONE_GROUP, PLAIN))),
    Claim(("", "… several groups"), is_none("added", ("synchrony", LOCK_STEP, PLAIN))),
    Claim(("5.1", "the more synchronous, the nearer to optimal (ms added)"),
          grows("added", "synchrony", *SYNCHRONY)),
    Claim(("3.5", "a timer decreases the number of resynchs"), timer_saves("timer", 1)),
    Claim(("", f"… one busy sender: at least {FEW} times"), timer_saves("timer-one", FEW)),
    Claim(("", "a longer timer delays deliveries (ms)"),
          grows("delay", "timer", *PANELS["timer"].values)),
    *(Claim(("5.2", f"trade-off, {PANELS[panel].title}"), trade_off(panel)) for panel in VARIED),
    Claim(("5.2", "M–R keeps less than BSS"), everywhere("memory", PLAIN, BSS)),
    Claim(("5.2", "one integer: more resynchs than M–R"), everywhere("resynchs", PLAIN, ONE)),
    Claim(("5.2", "… and later deliveries"), everywhere("delay", PLAIN, ONE)),
    *(is_less_here("hops", ("multicast", "network", protocol), ("multicast", "sender", protocol))
      for protocol in PANELS["multicast"].protocols),
)  # fmt: skip
