"""Root in the guest tries to get at the host's files, processes and sockets; nothing gets through.

Whether its programs are traced or not.
"""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.engines.virtual.kernel import Kernel
from testbed.engines.virtual.walls import landlock_version
from tests.emulation.conftest import in_guest

pytestmark = [
    pytest.mark.emulation,
    pytest.mark.skipif(not landlock_version(), reason="the host's kernel has no Landlock"),
]

SECRET = "secret-of-the-host"
# $HOST is a directory of the host with ``secret``, ``file`` and ``dir``; /host is all of the host
# mounted again, and $PID a process there; $R are the results.
WAYS = {
    "read": "cat $HOST/secret",
    "list": "ls $HOST",
    "copy": "cp $HOST/secret $R/copied; cat $R/copied",
    "write": "echo changed >$HOST/file",
    "read what is mounted again": "cat /host$HOST/secret",
    "list what is mounted again": "ls /host$HOST",
    "write what is mounted again": "echo changed >/host$HOST/file",
    "create there": "touch /host$HOST/new",
    "make a directory there": "mkdir /host$HOST/new",
    "remove there": "rm -f /host$HOST/file",
    "remove a directory there": "rmdir /host$HOST/dir",
    "rename there": "mv /host$HOST/file /host$HOST/new",
    "truncate there": ": >/host$HOST/file; truncate -s 1 /host$HOST/file",
    "change a mode there": "chmod 777 /host$HOST/file",
    "change an owner there": "chown 5:5 /host$HOST/file",
    "change times there": "touch -d 2001-01-01 /host$HOST/file",
    "make a link there": "ln -s x /host$HOST/new",
    "make a hard link out": "ln /host$HOST/secret /host$R/hard; cat $R/hard",
    "make a device there": "mknod /host$HOST/new c 1 5",
    "make a pipe there": "mkfifo /host$HOST/new",
    "move in from the results": "echo x >$R/mine; mv /host$R/mine /host$HOST/new",
    "mount the directory itself": "mount -t hostfs none /mnt -o $HOST && cat /mnt/secret",
    "write to that": "mount -t hostfs none /mnt -o $HOST && touch /mnt/new",
    "remount the root": "mount -o remount,rw /host; touch /host$HOST/new",
    "overlay on it": "mkdir -p /tmp/l; mount -t overlay o /mnt -o "
    "lowerdir=/tmp/l,upperdir=/host$HOST/dir,workdir=/host$HOST/dir && touch /mnt/new",
    "link in the results": "ln -s $HOST/secret $R/link; cat $R/link; cat /host$R/link",
    "link to a directory": "ln -s $HOST $R/way; touch /host$R/way/new; cat /host$R/way/secret",
    "the kernel's own root": "cat /proc/1/root$HOST/secret",
    "the host's processes": "cat /host/proc/$PID/root$HOST/secret /host/proc/$PID/environ",
    "the kernel as a process of the host": "cat /host/proc/self/root$HOST/secret",
    "a process's memory": "head -c 9 /host/proc/$PID/mem; echo x >/host/proc/$PID/comm",
    "a process's descriptors": "ls /host/proc/$PID/fd",
    "a process's limits": "echo 500 >/host/proc/$PID/oom_score_adj",
    "kernel settings": "echo changed >/host/proc/sys/kernel/hostname",
    "the host's devices": "ls /host/dev/pts; head -c 9 /host/dev/mem /host/dev/vda",
    "devices made here": "mknod /tmp/d b 8 0; head -c 9 /tmp/d; mknod /tmp/m c 1 1; head -c 9 /tmp/m",
    "block devices of the kernel": "ls /dev/ubd*; mknod /tmp/u b 98 0; head -c 9 /tmp/u",
    "kernel memory": "head -c 9 /dev/mem /dev/kmem /proc/kcore",
    "modules": "insmod /host$HOST/file",
    "passwords": "cat /etc/shadow /host/etc/shadow",
    "a TCP port": "bash -c 'echo >/dev/tcp/127.0.0.1/$PORT' && echo connected",
    "a Unix socket": "$PYTHON -c 'import socket; s = socket.socket(socket.AF_UNIX); "
    "s.connect(\"/host'$HOST'/socket\")' && echo connected",
    "a signal": "kill -9 $PID",
}


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What the guest must not get at."""
    host = tmp_path_factory.mktemp("host")
    (host / "secret").write_text(SECRET)
    (host / "file").write_text("before")
    os.utime(host / "file", (1, 1))
    (host / "dir").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(host / "socket"))
        server.listen()
        yield host


@pytest.fixture(scope="module", params=[False, True], ids=["traced", "trusted"])
def said(
    request: pytest.FixtureRequest,
    kernel: Kernel,
    host: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, str]:
    """What each of the ways led to, all of them in one guest."""
    settings = {"virtual": False, "trusted": request.param, "kernel": kernel}
    if request.param and not kernel.release.can_leave_untraced:
        pytest.skip(f"programs are always traced on {kernel.version}")
    results = tmp_path_factory.mktemp("results")
    with socket.create_server(("127.0.0.1", 0)) as server:
        variables = {
            "HOST": str(host),
            "R": str(results),
            "PID": str(os.getpid()),
            "PORT": str(server.getsockname()[1]),
            "PYTHON": "/usr/bin/python3",
            "LIBMOUNT_FORCE_MOUNT2": "always",  # newer ones would not hand `-o /` to hostfs as it is
        }
        ways = "".join(
            f'echo "=== {name}"; ( {way} ) 2>&1; umount /mnt 2>/dev/null\n'
            for name, way in WAYS.items()
        )
        script = (
            f"mkdir -p /host; mount -t hostfs none /host -o /; ls /host/usr\n{ways}echo '=== end'"
        )
        done = in_guest("bash", "-c", script, results=results, env=variables, **settings)
    assert done.result.mode == ("seccomp" if request.param else "ptrace")
    first, *parts = done.stdout.split("=== ")
    assert "bin" in first.split()  # so there is something behind /host
    return dict(part.split("\n", 1) for part in parts)


@pytest.mark.parametrize("way", WAYS)
def test_the_wall_holds(way: str, said: dict[str, str], host: Path) -> None:
    assert SECRET not in said[way]
    assert "dir\n" not in said[way]
    assert "connected" not in said[way]
    if way == "passwords":
        assert "root:" not in said[way]


def test_nothing_has_changed(said: dict[str, str], host: Path) -> None:
    assert said["end"].strip() == ""
    assert {path.name for path in host.iterdir()} == {"secret", "file", "dir", "socket"}
    status = (host / "file").stat()
    assert (host / "file").read_text() == "before"
    assert (status.st_mtime, status.st_uid) == (1, os.getuid())
    assert status.st_mode & 0o777 != 0o777
    assert not list((host / "dir").iterdir())
    assert Path("/proc/sys/kernel/hostname").read_text() != "changed\n"
