"""What root makes for a user who called sudo is that user's."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import tomli_w

from testbed.commands import ownership
from testbed.commands.ownership import handed_over
from testbed.engines.virtual.kernel import RELEASES, Kernel
from tests.command_line import CommandLine
from tests.experiments import SMALL

USER, GROUP = 12345, 23456
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="takes root")


@pytest.fixture(autouse=True)
def sudo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_UID", str(USER))
    monkeypatch.setenv("SUDO_GID", str(GROUP))


def owners(top: Path) -> set[tuple[int, int]]:
    found = [path.lstat() for path in (top, *top.rglob("*"))]
    return {(status.st_uid, status.st_gid) for status in found}


def test_a_run_with_sudo_is_its_callers_from_the_first_directory_that_was_made(
    tmp_path: Path, testbed: CommandLine
) -> None:
    runs, file = tmp_path / "new" / "runs", tmp_path / "small.toml"
    file.write_text(tomli_w.dumps(SMALL))
    testbed("run", file, "--no-digest", "--runs", runs)
    assert owners(tmp_path / "new") == {(USER, GROUP)}
    assert (runs / "small" / "latest").is_symlink()
    assert tmp_path.stat().st_uid == 0


def test_what_fails_is_handed_over_too(tmp_path: Path) -> None:
    runs = tmp_path / "runs"

    def fail() -> None:
        (runs / "half").mkdir(parents=True)
        raise RuntimeError

    with pytest.raises(RuntimeError), handed_over(runs):
        fail()
    assert owners(runs) == {(USER, GROUP)}


def test_of_a_directory_that_is_anothers_nothing_is_given_away(tmp_path: Path) -> None:
    with handed_over(tmp_path):
        (tmp_path / "new").mkdir()
    assert owners(tmp_path) == {(0, 0)}


def test_links_are_not_followed_and_others_files_stay_theirs(tmp_path: Path) -> None:
    outside, runs = tmp_path / "outside", tmp_path / "runs"
    outside.write_text("root's")
    runs.mkdir()
    os.chown(runs, USER, GROUP)
    theirs = runs / "theirs"
    theirs.write_text("a third one's")
    os.chown(theirs, 4, 5)
    with handed_over(runs):
        (runs / "link").symlink_to(outside)
    assert outside.stat().st_uid == 0
    assert (runs / "link").lstat().st_uid == USER
    assert theirs.stat().st_uid == 4


def test_a_file_that_another_run_takes_away_meanwhile_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = tmp_path / "runs"
    real = os.fwalk

    def walk(top: str, dir_fd: int) -> Iterator[tuple[str, list[str], list[str], int]]:
        for where, directories, files, here in real(top, dir_fd=dir_fd):
            yield where, directories, [*files, "gone.part"], here

    monkeypatch.setattr(os, "fwalk", walk)
    with handed_over(runs):
        runs.mkdir()
        (runs / "kept").write_text("")
    assert owners(runs) == {(USER, GROUP)}


def test_without_sudo_root_keeps_what_is_roots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SUDO_UID")
    with handed_over(tmp_path / "runs"):
        (tmp_path / "runs").mkdir()
    assert owners(tmp_path / "runs") == {(0, 0)}


def test_the_kernels_cache_is_the_callers(tmp_path: Path) -> None:
    script = Path("scripts/kernel").read_text()
    assert script.endswith('\nmain "$@"\n')
    (tmp_path / "script").write_text(script.replace('\nmain "$@"\n', "\nmake_cache\n"))
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "a" / "b")}
    subprocess.run(["bash", str(tmp_path / "script")], check=True, env=environment)
    assert owners(tmp_path / "a") == {(USER, GROUP)}


@pytest.mark.parametrize("there", [True, False])
def test_what_takes_the_place_of_the_directory_meanwhile_stays_roots(
    there: bool, tmp_path: Path
) -> None:
    runs, roots = tmp_path / "runs", tmp_path / "roots"
    roots.mkdir()
    (roots / "secret").write_text("")
    if there:
        runs.mkdir()
        os.chown(runs, USER, GROUP)
    with handed_over(runs):
        if there:
            runs.rename(tmp_path / "aside")
        runs.symlink_to(roots)
    assert owners(roots) == {(0, 0)}


@pytest.mark.parametrize(("owner", "mode"), [(0, 0o755), (USER, 0o755), (0, 0o775), (0, 0o757)])
def test_what_others_can_write_is_not_executed_as_root_without_a_word(
    owner: int, mode: int, tmp_path: Path, testbed: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    linux, init, guard, symbols = (
        tmp_path / name for name in ("linux", "init", "guard", "symbols")
    )
    kernel = Kernel(linux, init, guard, symbols, RELEASES[0])
    kernel.guard.write_text("")
    os.chown(kernel.guard, owner, 0)
    kernel.guard.chmod(mode)
    monkeypatch.setattr(ownership, "find_kernel", lambda: kernel)
    monkeypatch.setattr(ownership, "testbed", pytest)  # wherever the checkout is, and whose
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    said = testbed("protocols", "overlay").err
    assert (f"root executes what other users can write: {kernel.guard};" in said) == (
        (owner, mode) != (0, 0o755)
    )
    monkeypatch.setattr("os.geteuid", lambda: USER)
    assert not testbed("protocols", "overlay").err


@pytest.mark.parametrize("value", ["", "abc", "-1", "0"])
def test_a_user_that_sudo_does_not_name_gets_nothing(
    value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUDO_UID", value)
    with handed_over(tmp_path / "runs"):
        (tmp_path / "runs").mkdir()
    assert owners(tmp_path) == {(0, 0)}
