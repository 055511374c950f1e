"""A space-time diagram in text: a line for each process, time to the right, arrows for messages.

    process 0 ━━●a━━━━━━━━━━━━━━━━━━━━━    Process 0 multicasts a; it arrives at 1, where it is
                 ├──┐                      delivered. Process 1 multicasts b; it arrives at 2 before
                 └──┼─────────────┐        a does, and is delivered wrongly.
    process 1 ━━━━━━▼a✓━━●b━━━━━━━┿━━━━
                          └──┐    │
    process 2 ━━━━━━━━━━━━━━━▼b✗━━▼a✓━━

An arrow leaves its sender's line, runs along it while the message is in transit, and goes straight to
its receiver. Every moment has columns of its own, so that arrows meet only where they cross.
"""

from collections import defaultdict, deque
from collections.abc import Iterator
from string import ascii_lowercase
from typing import NamedTuple

from rich.text import Text

from testbed.explore import CounterExample
from testbed.protocols import MessageId

COLOURS = ("cyan", "magenta", "yellow", "green", "blue")
WRONG = "bold red"
UP, DOWN, LEFT, RIGHT = 1, 2, 4, 8
_THIN = {
    UP | DOWN: "│",
    LEFT | RIGHT: "─",
    DOWN | RIGHT: "┌",
    DOWN | LEFT: "┐",
    UP | RIGHT: "└",
    UP | LEFT: "┘",
    UP | DOWN | RIGHT: "├",
    UP | DOWN | LEFT: "┤",
    DOWN | LEFT | RIGHT: "┬",
    UP | LEFT | RIGHT: "┴",
    UP | DOWN | LEFT | RIGHT: "┼",
}
_ON_A_LINE = {0: "━", UP: "┷", DOWN: "┯", UP | DOWN: "┿"}
_LEGEND = {
    "◇": "begins",
    "●": "multicast",
    "▼": "arrives",
    "✓": "delivered",
    "✗": "delivered wrongly",
    "…": "waits",
    "∅": "never delivered",
    "τ": "a timer runs out",
    "!": "fails",
}


class Label(NamedTuple):
    """The text on a process's line at a moment."""

    text: str
    wrong: bool = False


class Arrow(NamedTuple):
    """A copy of a message, from the moment of its sending to that of its arrival."""

    start: int
    end: int
    message: MessageId


class Diagram:
    """A counter-example, drawn as a space-time diagram."""

    def __init__(self, processes: int, example: CounterExample) -> None:
        self.moments = moments = example.moments
        self.wrong = example.at, example.wrong.message
        self.processes = processes
        acts = [act for moment in moments for act in moment.did.events if act.kind == "send"]
        self.letters = dict(zip((act.name for act in acts), ascii_lowercase, strict=False))
        self.to = {act.name: act.to for act in acts}
        self.labels = [self._label(index) for index in range(len(moments))]
        self.ends = [self._end(process) for process in range(processes)]
        self._place()

    def lines(self, width: int = 100) -> Iterator[Text]:
        """The diagram, in several parts if it is wider than ``width`` columns."""
        names = [f"process {p} " for p in range(self.processes)]
        margin = max(map(len, names))
        part = max(20, width - margin)
        for start in range(0, self.width, part):
            for row in range(self.rows[-1] + 1):
                name = names[self.rows.index(row)] if row in self.rows else ""
                yield Text(name.ljust(margin)) + self._row(row)[start : start + part]

    def legend(self) -> tuple[str, str]:
        """The messages by letter, and the meaning of the signs."""
        names = ", ".join(
            f"{letter} = {name}{self._to(name)}" for name, letter in self.letters.items()
        )
        used = "".join([label.text for label in self.labels] + self.ends).replace("▲", "▼")
        signs = ", ".join(f"{sign} {what}" for sign, what in _LEGEND.items() if sign in used)
        return names, signs

    def _letter(self, name: MessageId) -> str:
        return self.letters.get(name, str(name))

    def _to(self, name: MessageId) -> str:
        to = self.to[name]
        return "" if to is None else f" to {' and '.join(map(str, sorted(to)))}"

    def _label(self, index: int) -> Label:
        moment, text = self.moments[index], ""
        if moment.received is not None:
            above = moment.sender is not None and moment.sender < moment.process
            text = ("▼" if above else "▲") + self._letter(moment.received)
        elif moment.timer is not None:
            text = "τ"
        elif moment.did.sends and not moment.did.events:
            text = "◇"
        wrong = False
        for kind, name, _ in moment.did.events:
            if kind == "send":
                text += f"●{self._letter(name)}"
                continue
            bad = self.wrong == (index, name)
            wrong |= bad
            if bad or name == moment.received or name.source != moment.process:
                text += ("✗" if bad else "✓") + self._letter(name) * (name != moment.received)
        text += "…" * any(name == moment.received for name, _ in moment.did.held)
        return Label(text + "!" * bool(moment.did.failure), wrong or bool(moment.did.failure))

    def _end(self, process: int) -> str:
        """The messages that a process never delivers."""
        if any(label.wrong for label in self.labels):
            return ""
        got = {n for m in self.moments if m.process == process for n in m.delivered}
        return "".join(
            f"∅{letter}"
            for name, letter in self.letters.items()
            if name not in got and ((to := self.to[name]) is None or process in to)
        )

    def _arrows(self) -> Iterator[Arrow]:
        under_way: defaultdict[tuple[int, int], deque[tuple[int, MessageId]]] = defaultdict(deque)
        for index, moment in enumerate(self.moments):
            if moment.received is not None and moment.sender is not None:
                queue = under_way[moment.sender, moment.process]
                start = next(entry for entry in queue if entry[1] == moment.received)
                queue.remove(start)
                yield Arrow(start[0], index, moment.received)
            for peer, message in moment.did.sends:
                under_way[moment.process, peer].append((index, message.id))

    def _place(self) -> None:
        """Assign columns to moments, rows to processes, and a lane near its sender to each arrow."""
        self.columns, column = [], 2
        for label in self.labels:
            self.columns.append(column)
            column += len(label.text) + 2
        self.width = column + max(map(len, self.ends))
        lanes: defaultdict[int, list[int]] = defaultdict(
            list
        )  # for each gap: the column up to which each lane is taken
        self.lane_of: dict[Arrow, tuple[int, int]] = {}
        for arrow in sorted(self._arrows(), key=lambda arrow: (arrow.start, arrow.end)):
            sender, peer = (self.moments[i].process for i in (arrow.start, arrow.end))
            gap = sender if peer > sender else sender - 1
            begin = self._departure(arrow.start)
            free = (i for i, taken in enumerate(lanes[gap]) if taken < begin)
            lane = next(free, len(lanes[gap]))
            lanes[gap][lane : lane + 1] = [self.columns[arrow.end]]
            self.lane_of[arrow] = gap, lane
        self.rows = [0]
        for gap in range(self.processes - 1):
            self.rows.append(self.rows[-1] + len(lanes[gap]) + 1)
        self._draw()

    def _departure(self, index: int) -> int:
        """The column in which arrows leave: the end of the label. They arrive at its beginning."""
        return self.columns[index] + len(self.labels[index].text) - 1

    def _draw(self) -> None:
        self.grid: defaultdict[tuple[int, int], int] = defaultdict(int)
        self.colour: dict[tuple[int, int], str] = {}
        for arrow, (gap, lane) in self.lane_of.items():
            start = self.rows[self.moments[arrow.start].process]
            end = self.rows[self.moments[arrow.end].process]
            row = self.rows[gap] + 1 + lane
            letter = list(self.letters).index(arrow.message) if arrow.message in self.letters else 0
            colour = COLOURS[letter % len(COLOURS)]
            self._vertical(self._departure(arrow.start), start, row, colour)
            self._horizontal(row, self._departure(arrow.start), self.columns[arrow.end], colour)
            self._vertical(self.columns[arrow.end], row, end, colour)

    def _vertical(self, column: int, start: int, end: int, colour: str) -> None:
        top, bottom = sorted((start, end))
        for row in range(top, bottom):
            self._join((row, column), DOWN, colour)
            self._join((row + 1, column), UP, colour)

    def _horizontal(self, row: int, start: int, end: int, colour: str) -> None:
        for column in range(start, end):
            self._join((row, column), RIGHT, colour)
            self._join((row, column + 1), LEFT, colour)

    def _join(self, cell: tuple[int, int], direction: int, colour: str) -> None:
        self.grid[cell] |= direction
        self.colour.setdefault(cell, colour)

    def _row(self, row: int) -> Text:
        on_a_line = row in self.rows
        signs = _ON_A_LINE if on_a_line else _THIN
        text = Text()
        for column in range(self.width):
            cell = self.grid.get((row, column), 0)
            text.append(signs.get(cell, " "), self.colour.get((row, column), ""))
        if not on_a_line:
            return text
        process = self.rows.index(row)
        for moment, column, label in zip(self.moments, self.columns, self.labels, strict=True):
            if moment.process == process:
                style = WRONG if label.wrong else "bold"
                end = column + len(label.text)
                text = text[:column] + Text(label.text, style) + text[end:]
        lacks = self.ends[process]
        return text[: self.width - len(lacks)] + Text(lacks, WRONG) if lacks else text
