"""Spark: quiet, on this machine or a cluster's, and gone when its ``with`` block ends."""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Lock, Timer, current_thread, main_thread
from typing import IO, TYPE_CHECKING, Any

from testbed.engines.needs import JAVA, java
from testbed.errors import UserError, require
from testbed.spark import IMPORTS

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
MASTERS = re.compile(
    r"local(\[(\d+|\*)(, *\d+)?\])?|local-cluster\[[\d, ]+\]|yarn|k8s://.+"
    r"|spark://[^:/,]+:\d+(,[^:/,]+:\d+)*"
)
PROBE_S = 5
SMALL = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
ANSWER_S = 300  # Spark itself gives up on a silent master after a minute, once it has started
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_STARTING = Lock()  # there is one Spark in a process: who comes second waits for the first


@contextmanager
def context(
    master: str = "local[*]", memory: str = "1g", small: bool = True, imports: Iterable[str] = ()
) -> Iterator[SparkContext]:
    """Spark, to run functions with; inside another such block it is the same one.

    ``imports`` are modules that the functions need.

    ``small`` is what Java itself has to do where Python does the work, and where queries are on
    little data: it then compiles less, which takes half the time.

    The output of the Java process is kept from the terminal: errors are exceptions. A ``UserError``
    that is raised in one of Spark's Python processes is raised here.
    """
    _check(master)
    with tempfile.TemporaryFile() as log, ExitStack() as started:
        with _STARTING:
            spark = _active() or _start(
                master, _settings(master, memory, small, imports), log, started
            )
        with user_errors():
            yield spark


@contextmanager
def context_ahead(master: str, *imports: str) -> Iterator[None]:
    """Start Spark and its Python workers beside what is done first in this block.

    If it does not start, whoever asks for a context next is told why.
    """
    with ExitStack() as started, ThreadPoolExecutor(1) as thread:
        thread.submit(_warm_up, started, master, imports)
        yield


def _warm_up(started: ExitStack, master: str, imports: tuple[str, ...]) -> None:
    spark = started.enter_context(context(master, imports=imports))
    cores = spark.defaultParallelism
    spark.parallelize(range(cores), cores).foreach(lambda _: None)


def _active() -> SparkContext | None:
    from pyspark import SparkContext

    return SparkContext._active_spark_context


def _start(
    master: str, settings: dict[str, str], log: IO[bytes], started: ExitStack
) -> SparkContext:
    """Start Spark; the stack ends it."""
    logging.getLogger().addFilter(is_news)
    logging.getLogger("py4j").setLevel(logging.CRITICAL)  # it has loggers of its own as well
    with _signals_wait():  # or Java would be left without anybody who knows of it
        gateway = _launch(settings, log)
        started.callback(_end, gateway)
    spark = _connect(master, gateway)
    started.callback(spark.stop)
    return spark


def is_news(record: logging.LogRecord) -> bool:
    """Whether to show what is logged: py4j logs a traceback of what it raises, signals among it."""
    return "py4j" not in Path(record.pathname).parts


@contextmanager
def _signals_wait() -> Iterator[None]:
    """Signals that end the program take effect after this block."""
    if current_thread() is not main_thread():  # where they never do
        yield
        return
    came: list[int] = []
    usual = {number: signal.getsignal(number) for number in ENDING}
    for number, handler in usual.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)
        for pending in came:
            signal.raise_signal(pending)


@contextmanager
def session(
    master: str = "local[*]", memory: str = "1g", small: bool = False
) -> Iterator[SparkSession]:
    """Spark, to query tables with, which takes longer to start."""
    with context(master, memory, small) as spark:
        from pyspark.sql import SparkSession

        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
        active = SparkSession.getActiveSession()
        if active is not None:
            yield active
            return
        running = SparkSession(spark)
        running.conf.set("spark.sql.shuffle.partitions", 2 * spark.defaultParallelism)
        try:
            yield running
        finally:
            running.stop()


@contextmanager
def user_errors() -> Iterator[None]:
    """Raise a ``UserError`` that Spark has wrapped in an exception of its own."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        words = str(error)  # Java's are there as long as Java is
        if told := re.search(r"\bUserError: (.+)", words):
            raise UserError(told[1].strip()) from None
        if type(error).__module__.startswith("py4j"):
            raise RuntimeError(words) from None
        raise


def _check(master: str) -> None:
    """Refuse what is known to be wrong before Java is started."""
    require("digest")
    if not MASTERS.fullmatch(master):
        raise UserError(
            f"{master!r} is no Spark master; local[2], local[*], spark://HOST:PORT, yarn or "
            "k8s://URL would be"
        )
    found = java()
    if not found.ok:
        raise UserError(f"Spark needs Java {JAVA} or later, here: {found.detail}; {found.remedy}")
    if master.startswith("spark://"):
        _probe(master)


def _probe(master: str) -> None:
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.partition(":")
        with suppress(OSError, OverflowError):
            socket.create_connection((host, int(port)), PROBE_S).close()
            return
    raise UserError(f"{master}: no answer; is there a Spark master (sbin/start-master.sh)?")


def _settings(master: str, memory: str, small: bool, imports: Iterable[str]) -> dict[str, str]:
    settings = {
        "spark.app.name": "testbed digest",
        "spark.master": master,
        "spark.driver.memory": memory,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.executorEnv.PYTHONPATH": str(ROOT),
        f"spark.executorEnv.{IMPORTS}": " ".join(imports),
        "spark.executorEnv.JE_ARROW_MALLOC_CONF": "background_thread:false",  # it is forked
        "spark.python.daemon.module": "testbed.spark.daemon",
    }
    if master.startswith("local"):
        settings |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
        settings["spark.shuffle.compress"] = "false"  # it stays on this machine
    return settings | (SMALL if small else {})


def _launch(settings: dict[str, str], log: IO[bytes]) -> Any:
    """Start the Java process; it ends when this one does, in whatever way."""
    from pyspark import SparkConf, java_gateway
    from pyspark.errors import PySparkRuntimeError

    launch: Any = java_gateway.launch_gateway
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if "spark.driver.bindAddress" in settings:
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    conf = SparkConf(loadDefaults=False).setAll([*settings.items()])
    try:
        return launch(conf, {"stdout": log, "stderr": log})
    except PySparkRuntimeError:
        log.seek(0)
        lines = log.read().decode(errors="replace").strip().splitlines()
        raise UserError(f"Spark's Java process did not start: {(lines or ['?'])[-1]}") from None


def _connect(master: str, gateway: Any) -> SparkContext:
    """A Spark context, unless the master does not answer."""
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.accumulators import AccumulatorTCPServer, AccumulatorUnixServer

    giving_up = Timer(ANSWER_S, gateway.proc.kill)
    if master.startswith("spark://"):
        giving_up.start()
    for server in (AccumulatorTCPServer, AccumulatorUnixServer):
        setattr(server, "handle_error", _end_quietly)  # noqa: B010 (mypy forbids the other way)
    try:
        return SparkContext(conf=SparkConf(_jvm=gateway.jvm), gateway=gateway)
    except (Py4JError, OSError) as error:
        if giving_up.finished.is_set() or "stopped SparkContext" in (cause := _cause(error)):
            raise UserError(
                f"{master}: takes connections, but does not answer as a Spark master"
            ) from None
        raise UserError(f"{master}: Spark does not start there: {cause}") from None
    finally:
        giving_up.cancel()


def _end_quietly(*_: object) -> None:
    """Say nothing: Java is gone because it was ended, and who ended it says so."""


def _cause(error: Exception) -> str:
    """The first line of a Java exception."""
    text = str(getattr(error, "java_exception", error))
    return text.strip().splitlines()[0] if text.strip() else type(error).__name__


def _end(gateway: Any) -> None:
    from pyspark import SparkContext

    SparkContext._gateway = SparkContext._jvm = None
    with suppress(Exception):
        gateway.shutdown()
    gateway.proc.stdin.close()
    try:
        gateway.proc.wait(timeout=10)
    except subprocess.TimeoutExpired:
        gateway.proc.kill()
        gateway.proc.wait()
