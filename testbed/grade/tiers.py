"""The tiers of a protocol: it is loaded, explored, fuzzed and run, all of it behind the wall."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tomli_w

from testbed.errors import ProtocolError, UserError
from testbed.experiment import load
from testbed.explore import explore
from testbed.explore.diagram import Diagram
from testbed.fuzz import Example, Origin, experiments, shrunk
from testbed.fuzz.trial import COSTLY
from testbed.grade.cells import CellError, Cells, harmless
from testbed.grade.emulated import emulated
from testbed.grade.lab import Lab, Tier
from testbed.grade.remote import Bench, Remote, stand_in_for
from testbed.grade.result import Result, half_and_half, share
from testbed.grade.seeds import hidden_seeds
from testbed.grade.submission import Submission
from testbed.plugins import BUILT_IN, stand_in
from testbed.progress import Tick, silent
from testbed.run import run_experiment

PROCESSOR_S = 120.0  # that a submission may use in one tier, all its processes together
TOO_SLOW = f"it uses more than {PROCESSOR_S:g} s of processor time"
SHRINKING = 200  # trials: some seconds
WIDTH = 100  # columns of a diagram
DERIVED: dict[str, Callable[[dict[str, Any]], float]] = {
    "control_bytes_per_message": lambda s: s["control_bytes"] / max(1, s["multicasts"]),
    "copies_per_message": lambda s: s["copies"] / max(1, s["multicasts"]),
    "delay_p99_ms": lambda s: s["delay_ms_p99"],
    "held": lambda s: s["delivery_queue_max"],
}


class Trials:
    """All tiers of one submission that need its code."""

    def __init__(
        self, lab: Lab, submission: Submission, secret: str, cells: Cells, examples: bool = True
    ) -> None:
        self.lab, self.submission, self.secret = lab, submission, secret
        self.examples = examples
        self.protocol: type[Remote] | None = None
        text = submission.texts[lab.submission] or ""
        self.bench = Bench(cells, lab.submission, text, sorted(BUILT_IN))
        self.problem = submission.problem or self._load()

    def _load(self) -> str:
        """Load it in a cell; what is wrong with it, if anything is."""
        try:
            name, facts = self.bench.load()
        except CellError as error:
            return str(error)
        for promise, wanted in self.lab.promises.items():
            if facts.get(promise) is not wanted:
                said = f"its class says {promise} = {facts.get(promise)}"
                return f"{said}; in this lab it must be {wanted}"
        self.protocol = stand_in_for(self.bench, harmless(name), self.lab.promises)
        return ""

    def judge(self, tier: Tier, tick: Tick) -> Result:
        """The outcome of a tier."""
        if self.protocol is None:
            sentence = self.problem if tier.kind == "loads" else f"not tried: {self.problem}"
            return _result(tier, 0, sentence)
        if self.bench.stuck and tier.kind != "loads":
            return _result(tier, 0, f"not tried, as it got stuck before: {self.bench.stuck}")
        kinds = {"loads": self._loads, "explore": self._explore, "fuzz": self._fuzz}
        # The limits of the testbed's own process would count the cells' waiting; cells have theirs.
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        with stand_in(self.protocol):
            try:
                return kinds.get(tier.kind, self._run)(tier, self.protocol, tick)
            except CellError as error:
                return _result(tier, 0, str(error))
            finally:
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                self.bench.clear()

    def _loads(self, tier: Tier, protocol: type[Remote], tick: Tick) -> Result:
        return _result(tier, tier.points, f"{protocol.name} can be loaded")

    def _explore(self, tier: Tier, protocol: type[Remote], tick: Tick) -> Result:
        self.bench.exploring = True
        try:
            found = explore(
                protocol,
                tier.nodes,
                tier.messages,
                fifo=tier.fifo,
                answers=tier.answers,
                subsets=tier.subsets,
                limit=tier.limit,
                progress=lambda _, done, of: tick(done, of),
            )
        except ProtocolError as error:
            return _result(tier, 0, harmless(error))
        finally:
            self.bench.exploring = False
        repeat = self._explore_command(tier)
        if found.verdict == "valid":
            said = f"all executions of {tier.nodes} processes, {tier.messages} messages, are right"
            return _result(tier, tier.points, f"{said} ({found.found.states:,} states)")
        if (example := found.counter_example) is None:
            said = f"it has more than {tier.limit:,} states, too many to try all executions"
            return _result(tier, 0, said, repeat=repeat)
        diagram = Diagram(found.nodes, example)
        lines = [line.plain.rstrip() for line in diagram.lines(WIDTH)]
        drawn = "\n".join([*lines, "", *diagram.legend()])
        oracle = "; ".join(example.oracle)
        said = f"{example.wrong.sentence}{f' (the oracle: {oracle})' if oracle else ''}"
        return _result(tier, 0, said, repeat=repeat, diagram=drawn)

    def _explore_command(self, tier: Tier) -> str:
        options = f"--nodes {tier.nodes} --messages {tier.messages}"
        for name in ("fifo", "answers", "subsets"):
            options += "" if getattr(tier, name) else f" --no-{name}"
        return f"testbed explore --protocol ./{self.lab.submission} {options}"

    def _fuzz(self, tier: Tier, protocol: type[Remote], tick: Tick) -> Result:
        wrong: dict[Origin, str] = {}
        tried, started_s = 0, self.bench.used_s
        seeds = self._seeds(tier)
        for seed in seeds:
            tick(tried, len(seeds))
            origin = Origin(seed, tier.large)
            (*_, (_, trial)) = experiments(protocol, origin)
            tried += 1
            if trial.wrong is not None:
                wrong[origin] = trial.sentence
                if trial.wrong in COSTLY:
                    break
            if self.bench.used_s - started_s > PROCESSOR_S:
                wrong[origin] = TOO_SLOW
                break
        right = tried - len(wrong)  # what was not tried after it got stuck is not right either
        score = half_and_half(tier.points, right, len(seeds))
        said = f"{right} of {len(seeds)} seeds are right"
        if not wrong:
            return _result(tier, score, said)
        return self._fuzz_failed(tier, protocol, score, said, wrong)

    def _seeds(self, tier: Tier) -> list[int]:
        if not tier.hidden:
            return list(range(1, tier.seeds + 1))
        student, lab = self.submission.student, self.lab.name
        return hidden_seeds(self.secret, student, lab, tier.name, tier.seeds)

    def _fuzz_failed(
        self, tier: Tier, protocol: type[Remote], score: int, said: str, wrong: dict[Origin, str]
    ) -> Result:
        first, kind = next(iter(wrong.items()))
        if tier.secret:
            return _result(tier, score, said, aside=f"seed {first.seed}: {harmless(kind)}")
        # To make what is slow smaller would take long.
        if self.bench.stuck or kind == TOO_SLOW or not self.examples:
            return _result(tier, score, f"{said}; seed {first.seed}: {harmless(kind)}")
        example = self._shrunk(protocol, first)
        document = {**example.document, "protocol": {"name": f"./{self.lab.submission}"}}
        sentence = f"{said}; seed {first.seed}: {harmless(example.trial.sentence)}"
        text = f"# {harmless(example.trial.sentence)}\n{tomli_w.dumps(document)}"
        large = " --large" if tier.large else ""
        repeat = (
            f"testbed fuzz --protocol ./{self.lab.submission} --seeds 1 --first-seed {first.seed}"
        )
        return _result(tier, score, sentence, repeat=repeat + large, file=text)

    def _shrunk(self, protocol: type[Remote], origin: Origin) -> Example:
        """The smallest experiment found that goes wrong likewise; the judgement is over by now."""
        self.bench.together = True
        try:
            return shrunk(protocol.name, origin, SHRINKING)
        except ValueError:  # with all processes in one cell it goes right
            self.bench.together = False
            return shrunk(protocol.name, origin, SHRINKING)
        finally:
            self.bench.together = False

    def _run(self, tier: Tier, protocol: type[Remote], tick: Tick) -> Result:
        problems: list[tuple[str, str]] = []
        for done, file in enumerate(tier.files):
            tick(done, len(tier.files))
            if problem := self._run_one(tier, protocol, self.lab.directory / file):
                problems.append((file, problem))
        of = len(tier.files)
        score = share(tier.points, of - len(problems), of)
        said = f"{of - len(problems)} of {of} experiments are right and within their limits"
        if not problems:
            return _result(tier, score, said)
        file, problem = problems[0]
        told = f"{file}: {problem}"
        if tier.secret:
            return _result(tier, score, said, aside=told)
        repeat = f"testbed run {file} --protocol ./{self.lab.submission} --no-digest"
        return _result(tier, score, f"{said}; {told}", repeat=repeat)

    def _run_one(self, tier: Tier, protocol: type[Remote], file: Path) -> str:
        """What is wrong with the run of one experiment; nothing if all is well."""
        (experiment, *_) = load(file, protocol={"name": protocol.name}, engine="simulate")
        with tempfile.TemporaryDirectory(prefix="grade-") as runs:
            try:
                run = run_experiment(experiment, Path(runs), silent)
            except UserError as error:
                return harmless(str(error).replace(runs, "runs"))
            if run.verdict.verdict != "valid":
                return harmless(run.verdict.explain(1)[-1])
            if problem := over_limits(tier.limits, run.summary):
                return problem
        return emulated(protocol, file) if tier.engine == "virtual" else ""


def over_limits(limits: dict[str, float], summary: dict[str, Any]) -> str:
    """Which limit a run is beyond, if any."""
    for key, most in limits.items():
        if key in DERIVED:
            value = DERIVED[key](summary)
        elif isinstance(summary.get(key), int | float):
            value = summary[key]
        else:
            raise UserError(f"limits.{key}: a run has no such figure")
        if value > most:
            return f"{key} is {value:.6g}, and may be at most {most:g}"
    return ""


def _result(tier: Tier, score: int, sentence: str, **more: str) -> Result:
    return Result(tier.name, tier.kind, tier.points, score, sentence, **more)
