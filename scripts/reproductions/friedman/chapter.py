"""Friedman & Manor 2004, Figs. 3-17: Overlay against Timestamp, system size 100 to 600."""

from argparse import ArgumentParser, Namespace

from scripts.reproductions.chapter import Chapter, Reproduction
from scripts.reproductions.claims import judged
from scripts.reproductions.command import text
from scripts.reproductions.friedman.claims import CLAIMS
from scripts.reproductions.friedman.crashes import Survived, cases, survived
from scripts.reproductions.friedman.emulated import (
    DURATION_MS,
    ENGINE,
    FRAMING,
    beside,
    emulate,
    experiments,
)
from scripts.reproductions.friedman.judges import Results
from scripts.reproductions.friedman.points import (
    DATA,
    NETWORK,
    OVERLAY,
    PROBABILITIES,
    UNICAST,
    Point,
    Scale,
    experiment,
    measured,
)
from scripts.reproductions.friedman.shown import (
    FIGURE_PANELS,
    costs,
    crash_table,
    edges,
    plot,
    readings,
    scan,
    table,
    values,
)
from scripts.reproductions.running import compute, run, total
from testbed.errors import UserError
from testbed.experiment import Experiment
from testbed.sweep.points import cost

READINGS = {"along a tree": NETWORK, "as n − 1 copies": UNICAST}


def add_options(parser: ArgumentParser) -> None:
    """Declare the options of this reproduction."""
    every = [*PROBABILITIES]
    add = parser.add_argument
    add("--sizes", type=int, nargs="+", default=every, choices=every, metavar="N")
    add("--duration-ms", type=float,
        help="how long senders send; default: 5, with --engine virtual 1")  # fmt: skip
    add("--durations", type=float, nargs="+", default=[2.0, 5.0, 20.0, 60.0], metavar="MS",
        help="how long they send in the scan over that")  # fmt: skip
    add("--probabilities", type=float, nargs="+", default=[0.02, 0.03, 0.04], metavar="P",
        help="of an edge, in the scan over that")  # fmt: skip
    add("--seeds", type=int, default=10, help="topologies of each size, at least 2")
    add("--framing", choices=("bare", "udp"), help="default: bare, of an emulated network udp")
    add("--engine", choices=("simulate", ENGINE), default="simulate",
        help="virtual: one topology of each size on an emulated network, too")  # fmt: skip


def scale_of(options: Namespace) -> Scale:
    """How much is to be run."""
    usual_ms = DURATION_MS if options.engine == ENGINE else 5.0
    return Scale(
        sorted(set(options.sizes)),
        options.duration_ms or usual_ms,
        sorted(set(options.durations)),
        sorted(set(options.probabilities)),
        options.engine,
    )


def plan(options: Namespace) -> dict[Point, list[Experiment]]:
    """The runs of every point that is simulated."""
    emulated = options.engine == ENGINE
    if emulated and options.framing == "bare":
        raise UserError(
            "--framing bare: real packets have headers, so there is no --engine virtual"
        )
    framing = options.framing or (FRAMING if emulated else "bare")
    return {
        point: [experiment(point, seed, framing) for seed in range(1, options.seeds + 1)]
        for point in scale_of(options).points()
    }


def reproduce(options: Namespace) -> Chapter:
    """Run all points, and judge the claims by what was measured."""
    scale = scale_of(options)
    found = emulate(scale, options)
    found |= {point: measured(rows) for point, rows in run(plan(options), options).items()}
    tried = cases([*scale.sizes])
    pieces = {str(case): case for case in tried}
    outcomes = compute("friedman-crashes", survived, pieces, options, [OVERLAY])
    crashes = {case: Survived(*outcomes[str(case)]) for case in tried}
    results = {how: Results(found, scale, crashes, its) for how, its in READINGS.items()}
    verdicts = {how: judged(CLAIMS, its) for how, its in results.items()}
    return Chapter(
        name="friedman",
        title="Friedman & Manor 2004: Overlay against Timestamp",
        paper="R. Friedman, S. Manor: *Causal Ordering in Deterministic Overlay Networks*, 2004",
        text=text(__file__),
        scale=f"senders send for {scale.duration_ms:g} ms; {options.seeds} topologies of each size",
        seeds=f"1 to {options.seeds} at every point, a topology each; 1 where packets are looked at"
        if scale.emulated()
        else f"1 to {options.seeds} at every point, a topology each",
        command=command(options),
        tables=[
            *(table(key, label, found, scale) for its in FIGURE_PANELS for key, label in its.keys),
            readings(verdicts),
            costs(results["along a tree"]),
            crash_table(crashes),
            scan(found, scale),
            edges(found, scale),
            *([beside(found, scale)] if scale.emulated() else []),
        ],
        plots=[
            plot(its, index, found, scale) for its in FIGURE_PANELS for index in range(len(DATA))
        ],
        claims=verdicts["along a tree"],
        values=values(results["along a tree"]),
    )


def command(options: Namespace) -> str:
    """The command that makes the same chapter."""
    lists = {"sizes": options.sizes, "durations": options.durations}
    lists["probabilities"] = options.probabilities
    words = [
        f"--{name} {' '.join(f'{x:g}' for x in sorted(set(its)))}" for name, its in lists.items()
    ]
    framing = f" --framing {options.framing}" if options.framing else ""
    return (
        f"scripts/reproduce friedman {' '.join(words)} --duration-ms {scale_of(options).duration_ms:g} "
        f"--seeds {options.seeds} --engine {options.engine}{framing}"
    )


FRIEDMAN = Reproduction(
    "friedman",
    __doc__,
    add_options,
    reproduce,
    lambda options: total({**plan(options), **experiments(scale_of(options))}, cost),
    quick=(
        *("--sizes", "100", "200", "--duration-ms", "2", "--durations", "2", "20"),
        *("--probabilities", "0.03", "0.04", "--seeds", "3"),
    ),
    paper=("--seeds", "10"),
)
