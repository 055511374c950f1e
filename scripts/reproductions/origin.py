"""By what the results of a chapter are known to be of the present code."""

from hashlib import sha256
from pathlib import Path

from scripts.reproductions.running import ALL, EXPERIMENTS
from scripts.searches import ROOT
from testbed.plugins.code import code_hash
from testbed.protocols import PROTOCOLS
from testbed.protocols.broken import BROKEN

HERE = Path(__file__).parent
SHARED = ("claims.py", "intervals.py", "measuring.py", "running.py")
CORE = (
    "topologies",
    *(f"testbed/{d}" for d in ("check", "engines", "experiment", "faults", "node", "workloads")),
)


def code_of(chapter: str, protocols: str) -> str:
    """A hash of the chapter's code and claims, of the engines, and of the protocols it has run."""
    files = [HERE / name for name in SHARED] + [*(HERE / chapter).rglob("*.py")]
    files += [file for folder in CORE for file in (ROOT / folder).rglob("*.py")]
    if ALL in protocols.split():
        files += (ROOT / "protocols").rglob("*.py")
    files += [file for file in [EXPERIMENTS / f"{chapter}.toml"] if file.exists()]
    digest = sha256()
    for file in sorted(files):
        digest.update(f"{file.relative_to(ROOT)}\n".encode() + file.read_bytes())
    for name in protocols.split():
        if protocol := (PROTOCOLS | BROKEN).get(name):
            digest.update(code_hash(protocol).encode())
    return digest.hexdigest()[:16]
