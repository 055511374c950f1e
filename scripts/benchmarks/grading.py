"""A class of sixty, graded twice: how long it takes, and whether both tables are equal to the byte.

The submissions are made from a lab's own solutions: the reference, its wrong ones, and the reference
with a statement that a protocol has no business to execute. Each has a comment of its own, so that no
two are equal."""

import argparse
import ast
import os
import sys
import time
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory

from scripts.searches import bar
from testbed.grade.course import Course, grade_class
from testbed.grade.lab import TEACHER, Lab
from testbed.grade.output import write_all
from testbed.grade.result import Grade
from testbed.grade.submission import read_all
from testbed.grade.tables import remark, to_csv

SECRET = "of no course"
BAD = {
    "forks-for-ever": "while True: __import__('os').fork()",
    "fills-the-disk": "open('/tmp/full', 'wb').write(bytes(1 << 40))",
    "reads-etc-passwd": "print(open('/etc/passwd').read())",
    "opens-sockets": "__import__('_socket').socket()",
    "sleeps": "__import__('time').sleep(3600)",
    "loops": "while True: pass",
    "takes-all-memory": "self.hoard = [bytes(1 << 20) for _ in range(1 << 20)]",
    "ends-itself": "__import__('os')._exit(0)",
}


def submissions(lab: Lab, count: int) -> dict[str, str]:
    """So many texts by name: half of them right, and each way to misbehave once."""
    reference = (lab.directory / TEACHER / "reference.py").read_text("utf-8")
    wrong = {
        Path(name).stem: (lab.directory / TEACHER / "wrong" / name).read_text("utf-8")
        for name in sorted(lab.wrong)
    }
    bad = {name: with_statement(reference, statement) for name, statement in BAD.items()}
    right = {f"right-{n:02d}": reference for n in range(count // 2)}
    others = islice(cycle(wrong.items()), max(0, count - len(right) - len(bad)))
    more = {f"{name}-{n:02d}": text for n, (name, text) in enumerate(others)}
    texts = dict(islice({**right, **bad, **more}.items(), count))
    return {name: f"{text}\n# handed in by {name}\n" for name, text in texts.items()}


def with_statement(text: str, statement: str) -> str:
    """A protocol that executes a statement first of all whenever it receives something."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == "receive":
            node.body[1:1] = ast.parse(statement).body
    return ast.unparse(tree)


def main() -> int:
    """Grade, say how long it took, and compare."""
    parser = argparse.ArgumentParser(prog="scripts/bench grading", description=__doc__)
    parser.add_argument("lab", type=Path)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    lab = Lab.read(options.lab)
    tables = []
    with TemporaryDirectory() as directory:
        for name, text in submissions(lab, options.count).items():
            (Path(directory) / f"{name}.py").write_text(text, "utf-8")
        handed_in = read_all(sorted(Path(directory).glob("*.py")), lab)
        for attempt in ("first", "second"):
            course = Course(lab, SECRET, Path(directory) / attempt)
            began_s, load = time.monotonic(), os.getloadavg()[0]
            with bar(f"the {attempt} time", "submissions", len(handed_in)) as tell:
                grades = grade_class(
                    course, handed_in, options.jobs, lambda _, done, of: tell(done)
                )
            write_all(course, grades)
            took_s = time.monotonic() - began_s
            used = os.times()
            print(
                f"{attempt}: {len(grades)} submissions in {took_s / 60:.1f} minutes, load {load:.1f} "
                f"and {os.getloadavg()[0]:.1f}; processor time so far "
                f"{used.children_user + used.children_system:.0f} s",
                flush=True,
            )
            tables.append((to_csv(lab, grades), (course.output / "class.html").read_bytes()))
    show(grades)
    same = tables[0] == tables[1]
    print("both tables are equal to the byte" if same else "the tables DIFFER")
    return 0 if same else 1


def show(grades: list[Grade]) -> None:
    """A line for each submission."""
    for grade in grades:
        print(f"{grade.score:4} {grade.student:28} {remark(grade)[:150]}")


if __name__ == "__main__":
    sys.exit(main())
