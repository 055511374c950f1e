"""What Spark's Python workers have when they start."""

import json
import subprocess
import sys

from tests.emulation.conftest import CHECKOUT

PROGRAM = """
import gc, json, os, sys
from testbed.digest import WORKERS
from testbed.spark.session import context

def look(_):
    import pyspark
    imported = "testbed.digest.pipeline" in sys.modules
    import pyarrow
    pyarrow.array([1]).to_numpy()
    return {
        "imported": imported,
        "pandas": "pandas" in sys.modules,
        "from": pyspark.__file__,
        "frozen": gc.get_freeze_count(),
        "daemon's threads": len(os.listdir(f"/proc/{os.getppid()}/task")),
    }

with context("local[2]", imports=WORKERS) as spark:
    print(json.dumps(spark.parallelize(range(2), 2).map(look).collect()))
"""


def test_workers_are_forked_from_a_process_that_has_imported_what_they_need() -> None:
    words = [sys.executable, "-c", PROGRAM]
    told = subprocess.run(words, cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout
    workers = json.loads(told)
    assert len(workers) == 2
    for worker in workers:
        assert worker["imported"]
        assert not worker["pandas"]
        assert ".zip" not in worker["from"]
        assert worker["frozen"] > 10_000
        assert worker["daemon's threads"] == 1  # or it must not fork
