"""What scripts/setup would install, on systems that are pretended by stubs of their programs."""

import os
import signal
import subprocess
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from shutil import make_archive, which

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = ["bash", "cat", "cut", "dirname", "flock", "grep", "ln", "mktemp", "rm", "sed"]
TOOLS += ["setpriv", "sha256sum", "tail", "tee", "tr", "true", "uname", "wc"]
BASE = ["python3", "python3-venv", "mininet", "openvswitch-switch", "python3-openvswitch"]
BASE += ["iproute2", "iputils-ping", "gcc", "python3-dev"]
JAVA = "java-runtime-headless (= {0}), java17-runtime-headless, java{0}-runtime-headless"
BOOKWORM = [*BASE, "libpcap0.8", f"openjdk-17-jre-headless, {JAVA.format(17)}"]
TRIXIE = [
    *BASE,
    "libpcap0.8t64, libpcap0.8 (= 1.10.5-2)",
    f"openjdk-21-jre-headless, {JAVA.format(21)}",
]
Setup = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    """Runs setup where the environment is ready, with only the given programs."""
    (tmp_path / "scripts").mkdir()
    (tmp_path / "testbed").mkdir()
    bin_, environment = tmp_path / "bin", tmp_path / ".venv" / "bin"
    bin_.mkdir()
    environment.mkdir(parents=True)
    for tool in TOOLS:
        (bin_ / tool).symlink_to(str(which(tool)))
    files = [ROOT / "scripts" / "setup", ROOT / "requirements.txt", ROOT / "pyproject.toml"]
    for file in files:
        (tmp_path / file.relative_to(ROOT)).write_bytes(file.read_bytes())
    stamp = sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    (tmp_path / ".venv" / ".stamp").write_text(stamp)
    stub(environment / "testbed", "")
    stub(environment / "python", "")  # finds the simulator's core compiled

    def run(*options: str, **programs: str) -> subprocess.CompletedProcess[str]:
        for name, text in programs.items():
            stub(bin_ / name.replace("_", "-"), text)
        kernel = "" if (tmp_path / "scripts" / "kernel").exists() else "none"
        heeding = [str(which("env")), "--default-signal=INT"]  # background jobs would ignore it
        return subprocess.run(
            [*heeding, "bash", tmp_path / "scripts" / "setup", *options],
            env={"PATH": str(bin_), "TESTBED_KERNEL": kernel, "TMPDIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
            start_new_session=True,
        )

    return run


def stub(file: Path, text: str) -> None:
    file.write_text(f"#!/bin/bash\n{text}\n")
    file.chmod(0o755)


def installed(packages: list[str]) -> str:
    return "\n".join(f"echo 'ii  {package}'" for package in packages)


@pytest.mark.parametrize("packages", [BOOKWORM, TRIXIE], ids=["bookworm", "trixie"])
def test_what_is_provided_is_there_whatever_it_is_called(setup: Setup, packages: list[str]) -> None:
    done = setup(dpkg_query=installed(packages))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("version", "lacking"),
    [
        ("25.0.1", ""),
        ("17.0.2", ""),
        ("11.0.20", "default-jre-headless"),
        ("1.8.0_3", "default-jre-headless"),
    ],
)
def test_a_java_that_is_no_package_counts_if_spark_takes_it(
    setup: Setup, version: str, lacking: str
) -> None:
    java = f"echo 'openjdk version \"{version}\"' >&2"
    done = setup("--packages", dpkg_query=installed(TRIXIE[:-1]), java=java)
    assert done.stdout.strip() == lacking


def test_on_ubuntu_what_the_archive_lacks_is_named_and_the_rest_installed(
    setup: Setup, tmp_path: Path
) -> None:
    # Ubuntu's archive has no chromium, and libpcap0.8 is provided by libpcap0.8t64.
    apt = f'[[ "$*" == *chromium* ]] && exit 100; echo "$*" >>{tmp_path}/asked; echo pmstatus:x:50.1:x'
    sudo = 'while [[ $1 == -n || $1 == env || $1 == *=* ]]; do shift; done; exec "$@"'
    done = setup(
        "--tests",
        dpkg_query=installed(["python3", "python3-venv", "iproute2"]),
        apt_get=apt,
        sudo=sudo,
        env=sudo,
        dpkg="true",
    )
    assert done.returncode == 0
    assert "this system's archive has no chromium" in done.stderr
    last = (tmp_path / "asked").read_text().splitlines()[-1]
    assert last.endswith(
        " mininet openvswitch-switch python3-openvswitch libpcap0.8 iputils-ping "
        "default-jre-headless gcc python3-dev tshark shellcheck python3-wheel"
    )


@pytest.mark.parametrize("packed", [True, False], ids=["tarball", "tree"])
def test_a_kernel_source_of_another_release_is_refused(packed: bool, tmp_path: Path) -> None:
    tree = tmp_path / "linux-6.8"
    (tree / "init").mkdir(parents=True)
    (tree / "Makefile").write_text("VERSION = 6\nPATCHLEVEL = 8\nSUBLEVEL = 12\n")
    (tree / "init" / "Makefile").write_text("VERSION = 7\n")
    source = Path(make_archive(str(tree), "gztar", tmp_path, tree.name)) if packed else tree
    done = subprocess.run(
        [ROOT / "scripts" / "kernel", "--source", source],
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert f"{source} is Linux 6.8.12; the patches are for 7.2 6.12." in done.stderr


def test_another_system_is_told_what_to_do(setup: Setup) -> None:
    done = setup()
    assert done.returncode == 0
    assert "no apt-get: install what Debian calls python3 python3-venv mininet" in done.stderr
    assert "container image" in done.stderr


def test_an_interrupt_of_the_kernels_build_ends_it(setup: Setup, tmp_path: Path) -> None:
    """The build ends by itself then, after which a shell would go on; what it leaves is removed."""
    kernel = "[[ $* != --check ]] || exit 1; trap 'exit 130' INT; mktemp; kill -INT 0"
    stub(tmp_path / "scripts" / "kernel", kernel)
    done = setup(dpkg_query=installed(TRIXIE))
    assert "building the kernel" in done.stderr
    assert (done.returncode, "done" in done.stderr) == (130, False)
    assert [*tmp_path.glob("tmp.*")] == []


def test_without_root_the_command_is_told(setup: Setup) -> None:
    if os.geteuid() == 0:
        pytest.skip("root needs no sudo")
    packages = [package for package in TRIXIE if package != "mininet"]
    done = setup(dpkg_query=installed(packages), apt_get="exit 1", sudo="exit 1")
    assert "sudo apt-get install --no-install-recommends mininet\n" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_for_setup_alone_ends_what_it_runs(
    setup: Setup, tmp_path: Path, number: signal.Signals
) -> None:
    ended = tmp_path / "ended"
    kernel = f"""[[ $* != --check ]] || exit 1
        trap 'echo >{ended}; exit 130' INT
        read -r _ _ _ setup _ </proc/$PPID/stat  # which waits for the shell that called this
        kill -{number.value} "$setup"
        while :; do :; done"""
    stub(tmp_path / "scripts" / "kernel", kernel)
    done = setup(dpkg_query=installed(BOOKWORM))
    assert ended.exists()
    assert (done.returncode, "done" in done.stderr) == (128 + number, False)
