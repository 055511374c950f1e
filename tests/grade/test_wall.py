"""The wall: code of a submission computes and does nothing else; whatever it tries gets a sentence."""

from pathlib import Path

import pytest

from testbed.errors import ProtocolError
from testbed.grade.cells import Cells
from testbed.grade.remote import Bench, Remote, stand_in_for
from testbed.node.effects import MisuseError
from testbed.plugins.limits import StuckError
from testbed.protocols import Place
from tests.grade.conftest import causal

REFUSED = "Operation not permitted"
OS = '__import__("os")'
SWALLOWED = """
        try:
            {statement}
        except BaseException as error:
            raise ValueError(f"tried: {{type(error).__name__}}")
"""


def said_by(cells: Cells, text: str) -> str:
    """What is said of a protocol whose process 1 receives a message of process 0."""
    bench = Bench(cells, "protocol.py", text, [])
    kind = stand_in_for(bench, "causal", {})
    try:
        one, other = (kind(Place(me, 2)) for me in range(2))
        effects = list(one.multicast(b"x", None, 5))
        return str(list(other.receive(effects[0].message, 0, 6)))  # type: ignore[union-attr]
    except (MisuseError, StuckError, ProtocolError) as error:
        return str(error)
    finally:
        bench.clear()


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        (f"{OS}.fork()", REFUSED),
        (f'{OS}.execv("/bin/true", ["true"])', REFUSED),
        (f"{OS}.kill({OS}.getppid(), 9)", REFUSED),
        (f"{OS}.kill({OS}.getpid(), 9)", REFUSED),
        (f"{OS}.setuid(0)", REFUSED),
        ('open("/etc/passwd").read()', REFUSED),
        (f'open("{__file__}").read()', REFUSED),
        ('open("/proc/self/mem", "wb")', REFUSED),
        ('open("/tmp/full", "wb")', REFUSED),
        (f'{OS}.listdir("/")', REFUSED),
        (f'{OS}.stat("/")', REFUSED),
        ('__import__("_socket").socket()', REFUSED),
        ('__import__("time").sleep(3600)', REFUSED),
        ('__import__("mmap").mmap(-1, 4096)', "No module named 'mmap'"),
        ('__import__("_thread").start_new_thread(print, ())', "can't start new thread"),
        ('__import__("testbed.protocols.timestamp")', "No module named"),
        ('__import__("time").time()', "told the time as `now`"),
        (f"{OS}._exit(0)", "it ends its process"),
        ('__import__("ctypes").string_at(0)', "its process crashes (SIGSEGV)"),
        ("bytearray(1 << 40)", "more memory than it may have"),
        (f"{OS}.write(4, bytes([255]) * 9)", "it meddles with the pipe"),
        (
            "raise KeyError(object())",
            "KeyError: <object object at 0x…> (protocol.py, line 43: raise",
        ),
    ],
)
def test_what_a_protocol_may_not_do(cells: Cells, statement: str, sentence: str) -> None:
    """It is refused where it stands, and told with its line where it has one."""
    said = said_by(cells, causal(receive=statement))
    assert sentence in said
    if sentence == REFUSED:
        assert "(protocol.py, line 43: " in said


def test_a_file_is_not_even_opened_for_who_swallows_the_error(cells: Cells, tmp_path: Path) -> None:
    """An exception that is caught is no way around."""
    target = tmp_path / "written"
    statement = SWALLOWED.format(statement=f'open("{target}", "w").write("x")')
    assert "tried: PermissionError" in said_by(cells, causal(receive=statement))
    assert not target.exists()


def test_a_call_that_does_not_end(cells: Cells) -> None:
    """It is ended inside C code too, and others can be graded afterwards."""
    loop = causal(head="import itertools", receive="sum(itertools.repeat(0))")
    assert said_by(cells, loop) == "a call does not come to an end"
    assert "Deliver" in said_by(cells, causal())


def test_what_is_imported_is_looked_at_first(cells: Cells) -> None:
    """Before a line of it is executed."""
    said = said_by(cells, causal(head="import socket"))
    assert "protocol.py, line 7: it imports 'socket'; a protocol of a lab may import" in said


def test_nothing_is_left_behind() -> None:
    """A zygote and its cells end with the context."""
    with Cells() as others:
        pid = others._zygote.pid
        others.cell(320, 20)
        assert Path(f"/proc/{pid}").exists()
    assert not Path(f"/proc/{pid}").exists()


def test_the_class_stands_for_the_code_and_has_none(cells: Cells) -> None:
    """The grader's side never sees a class of the submission."""
    bench = Bench(cells, "protocol.py", causal(), [])
    name, facts = bench.load()
    assert (name, facts["optimistic"]) == ("causal", False)
    assert stand_in_for(bench, name, {}).__mro__[1] is Remote
