"""The experiment file: TOML in, validated experiments out, one for each protocol that it names.

A table is checked against the dataclass that it describes: [topology], [overlay] and [groups] against
the model that they name in ``topologies``, [protocol] against the protocol's ``Settings``, [workload]
against its model in ``testbed.workloads``. So a new model or protocol brings its own keys along.
"""

import dataclasses
import difflib
import json
import os
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_type_hints

import tomli_w
from pydantic import TypeAdapter, ValidationError

from testbed.errors import UserError, read_text
from testbed.faults import FAULTS, Fault
from testbed.packets.framing import Framing
from testbed.plugins import BUILT_IN, installed, look_up
from testbed.plugins.source import Source, source_of
from testbed.protocols import PROTOCOLS, Protocol
from testbed.protocols.channel import Reliable
from testbed.topologies import GROUPINGS, MODELS, OVERLAYS, Grouping, Links, Model, OverlayModel
from testbed.topologies.routing import Metric
from testbed.workloads import WORKLOADS, Bursts, Workload

ENGINES = ("simulate", "mininet", "virtual")
AUTO = "auto"  # the engine that suits the machine
LONGEST_SHOWN = 60  # characters of a wrong value
LONGEST_NAME = 100  # characters; a directory is called so
MOST_MS = 10**9  # a million seconds
MOST = 10**12  # of anything else
_REGISTRIES: dict[str, Mapping[str, Any]] = {  # what a protocol is called, ``plugins`` knows
    "topology": MODELS,
    "overlay": OVERLAYS,
    "groups": GROUPINGS,
    "workload": WORKLOADS,
    "fault": FAULTS,
}
_UNION_PARTS = {"str", "int", "float"}  # pydantic names which part of a union it means
_CHANNELS = {"raw": None, "reliable": Reliable.Settings}  # what a sweep does not look into


@dataclass(frozen=True)
class Transport:
    """How messages travel: the metric of routes, the packets that messages are cut into, who routes."""

    routing: Metric = "hops"
    framing: Framing = "udp"
    mtu: int = 1500
    controller: Literal["auto", "ryu", "os-ken"] = "auto"

    def __post_init__(self) -> None:
        if not 68 <= self.mtu <= 65_535:
            raise ValueError(f"mtu must be from 68 to 65535, not {self.mtu}")


@dataclass(frozen=True)
class Experiment:
    """One point: one protocol on one topology under one workload, with one seed."""

    name: str
    seed: int
    engine: str
    packets: Literal["counters", "full"]
    protocol: type[Protocol]
    settings: Any  # an instance of the protocol's own ``Settings``
    topology: Model
    links: Links
    overlay: OverlayModel
    transport: Transport
    workload: Workload
    groups: Grouping | None = None  # without: everybody receives, or whom the workload names
    channel: Reliable.Settings | None = None
    faults: tuple[Fault, ...] = ()
    file: Path | None = field(default=None, compare=False)

    @property
    def label(self) -> str:
        """The protocol, and those of its settings that are not the defaults."""
        defaults, settings = _plain(self.protocol.Settings()), _plain(self.settings)
        changed = (
            f"{key} {value:g}" if isinstance(value, float) else f"{key} {value}"
            for key, value in settings.items()
            if value != defaults.get(key)
        )
        return ", ".join([self.protocol.name, *changed])

    @property
    def origin(self) -> str:
        """Where an error in the experiment is to be looked for: its file, or else its name."""
        return str(self.file or self.name)

    def to_toml(self) -> str:
        """The experiment as resolved: running this file again is running this experiment.

        A protocol in a file of its own is named as its copy, which a run directory keeps.
        """
        document: dict[str, Any] = {
            "name": self.name,
            "seed": self.seed,
            "engine": self.engine,
            "packets": self.packets,
            "protocol": {"name": _kept_name(self.protocol), **_plain(self.settings)},
            "topology": {"model": self.topology.model, **_plain(self.topology)},
            "links": _plain(self.links),
            "overlay": {"model": self.overlay.model, **_plain(self.overlay)},
            "transport": _plain(self.transport),
            "workload": {"model": self.workload.model, **_plain(self.workload)},
            "channel": "raw"
            if self.channel is None
            else {"model": "reliable", **_plain(self.channel)},
            "fault": [{"kind": fault.kind, **_plain(fault)} for fault in self.faults],
        }
        if self.groups is not None:
            document["groups"] = {"model": self.groups.model, **_plain(self.groups)}
        return tomli_w.dumps(document)

    def __getstate__(self) -> dict[str, Any]:
        """A protocol in a file of its own travels as the text of that file."""
        source = source_of(self.protocol)
        own = {"protocol": source, "settings": _plain(self.settings)} if source else {}
        return {**vars(self), **own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        if isinstance(source := state["protocol"], Source):
            protocol = source.load(BUILT_IN)
            settings = _build(protocol.Settings, state["settings"], source.file, "protocol")
            state = {**state, "protocol": protocol, "settings": settings}
        vars(self).update(state)


@dataclass(frozen=True)
class _Top:
    """The keys of the file itself."""

    name: str
    topology: dict[str, Any]
    protocol: dict[str, Any] | list[dict[str, Any]]
    seed: int = 1
    engine: str = "simulate"
    packets: Literal["counters", "full"] = "counters"
    links: dict[str, Any] = field(default_factory=dict)
    overlay: dict[str, Any] = field(default_factory=lambda: {"model": "hypercube"})
    groups: dict[str, Any] | None = None
    transport: dict[str, Any] = field(default_factory=dict)
    workload: dict[str, Any] = field(default_factory=lambda: {"model": Bursts.model})
    channel: str | dict[str, Any] = "raw"
    fault: list[dict[str, Any]] = field(default_factory=list)


def load(file: Path, **overrides: Any) -> list[Experiment]:
    """The experiments of a file; ``overrides`` replace top-level keys."""
    document = read_document(file)
    document.update({key: value for key, value in overrides.items() if value is not None})
    return parse(document, file)


def read_document(file: Path) -> dict[str, Any]:
    """What an experiment file says, not yet looked at."""
    try:
        return tomllib.loads(read_text(file))
    except FileNotFoundError:
        raise UserError(f"{file}: no such file; examples are in scripts/experiments") from None
    except RecursionError:
        raise UserError(f"{file}: cannot be read as TOML: it is nested too deeply") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"{file}: cannot be read as TOML: {error}") from None


def parse(document: Mapping[str, Any], file: Path) -> list[Experiment]:
    """The experiments of a document, one for each protocol that it names."""
    top: _Top = _build(_Top, document, file, "")
    if top.engine not in (*ENGINES, AUTO):
        raise _choice(file, "engine", top.engine, (*ENGINES, AUTO))
    tables = top.protocol if isinstance(top.protocol, list) else [top.protocol]
    if not tables:
        raise UserError(f"{file}: protocol is empty; name at least one of {_list(PROTOCOLS)}")
    experiments = []
    for table in tables:
        protocol, settings = _pick("protocol", table, file)
        experiments.append(
            Experiment(
                name=_name(top.name, file),
                seed=top.seed,
                engine=top.engine,
                packets=top.packets,
                protocol=protocol,
                settings=_build(protocol.Settings, settings, file, "protocol"),
                topology=_model("topology", _absolute(top.topology, file), file),
                links=_build(Links, top.links, file, "links"),
                overlay=_model("overlay", top.overlay, file),
                transport=_build(Transport, top.transport, file, "transport"),
                workload=_model("workload", top.workload, file),
                groups=None if top.groups is None else _model("groups", top.groups, file),
                channel=_channel(top.channel, file),
                faults=tuple(_model("fault", table, file) for table in top.fault),
                file=file,
            )
        )
    _check_names({experiment.protocol for experiment in experiments}, file)
    return experiments


def _check_names(protocols: Collection[type[Protocol]], file: Path) -> None:
    """See that figures and directories of different protocols can be told apart."""
    names = [protocol.name for protocol in protocols]
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"{file}: two different protocols are called {name!r}; rename one")


def key_types(table: str, content: Mapping[str, Any], file: Path = Path()) -> dict[str, Any]:
    """The type of every key that a table of a file may have; "" is the file itself.

    Of a table whose model is not known, nothing is known.
    """
    classes: dict[str, Any] = {"": _Top, "links": Links, "transport": Transport}
    named = str(content.get(naming_key(table)))
    cls: Any
    if table == "protocol":
        chosen = look_up(named, file.parent)
        cls = chosen and chosen.Settings
    elif registry := _REGISTRIES.get(table):
        cls = registry.get(named)
    else:
        cls = classes.get(table)
    if cls is None:
        return {}
    hints = get_type_hints(cls)
    return {field.name: hints[field.name] for field in dataclasses.fields(cls)}


def naming_key(table: str) -> str:
    """The key of a table that says which protocol or model or kind it is about."""
    return {"protocol": "name", "fault": "kind"}.get(table, "model")


def fits(kind: Any, value: Any) -> bool:
    """Whether a key of this type takes this value."""
    try:
        _validate(kind, value)
    except ValidationError:
        return False
    return True


def _name(name: str, file: Path) -> str:
    if not name or not all(c.isalnum() or c in "._-" for c in name) or name.startswith("."):
        raise UserError(
            f"{file}: name = {name!r} names a directory: use letters, digits, '-', '_' and '.'"
        )
    if len(name) > LONGEST_NAME:
        raise UserError(
            f"{file}: name has {len(name)} characters; at most {LONGEST_NAME} would fit"
        )
    return name


def _absolute(table: dict[str, Any], file: Path) -> dict[str, Any]:
    """A path in an experiment is meant from where the experiment is."""
    if isinstance(path := table.get("path"), str):
        return {**table, "path": os.path.realpath(file.parent / path)}
    return table


def _model(where: str, table: dict[str, Any], file: Path) -> Any:
    cls, rest = _pick(where, table, file)
    return _build(cls, rest, file, where)


def _channel(value: str | dict[str, Any], file: Path) -> Any:
    table = {"model": value} if isinstance(value, str) else value
    settings, rest = _pick("channel", table, file)
    if settings is None and rest:
        raise UserError(f"{file}: a raw channel has no settings, so not {_list(rest)} either")
    return settings and _build(settings, rest, file, "channel")


def _pick(where: str, table: dict[str, Any], file: Path) -> tuple[Any, dict[str, Any]]:
    """What a table names, and the rest of the table."""
    registry, key, rest = _REGISTRIES.get(where, _CHANNELS), naming_key(where), dict(table)
    name = rest.pop(key, None)
    offered = [*PROTOCOLS, *installed()] if where == "protocol" else list(registry)
    if name is None:
        raise UserError(f"{file}: [{where}] needs the key {key!r}: one of {_list(offered)}")
    if where == "protocol" and isinstance(name, str):
        registry = {name: found} if (found := _protocol(name, file)) else {}
    if not isinstance(name, str) or name not in registry:
        raise _choice(file, f"{where}.{key}", name, offered)
    return registry[name], rest


def _protocol(name: str, file: Path) -> type[Protocol] | None:
    try:
        return look_up(name, file.parent)
    except UserError as error:
        raise UserError(f"{file}: protocol.name: {error}") from None


def _kept_name(protocol: type[Protocol]) -> str:
    source = source_of(protocol)
    return protocol.name if source is None else f"{source.kept}:{source.cls}"


def _build(cls: Any, table: Mapping[str, Any], file: Path, where: str) -> Any:
    """An instance of a dataclass from a table; what does not fit is told in one sentence."""
    try:
        _check_numbers(table, where)
        return _validate(cls, table)
    except ValueError as error:
        if not isinstance(error, ValidationError):
            raise UserError(f"{file}: {error}") from None
        problem = error.errors()[0]
        raise UserError(f"{file}: {_sentence(cls, problem, where)}") from None


def _check_numbers(value: Any, where: str) -> None:
    """Refuse numbers that no engine can work with."""
    if isinstance(value, int | float):
        most = MOST_MS if where.endswith("_ms") else MOST
        if where != "seed" and not -most <= value <= most:
            raise ValueError(f"{where} = {value!r} is out of range: it must be at most {most:,}")
    elif isinstance(value, list | tuple):
        for inner in value:
            _check_numbers(inner, where)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            _check_numbers(inner, f"{where}.{key}" if where else key)


def _validate(kind: Any, value: Any) -> Any:
    """The value as this type; a key that its dataclass does not have is refused at every level."""
    return _adapter(kind).validate_json(json.dumps(value, default=str), strict=True, extra="forbid")


_adapter = cache(TypeAdapter)


def _sentence(cls: Any, problem: Any, where: str) -> str:
    path = [str(part) for part in problem["loc"]]
    path = [part for part in path if "[" not in part and part not in _UNION_PARTS]
    key = ".".join(([where] if where else []) + path)
    table = f"[{where}]" if where else "the file"
    match problem["type"]:
        case "unexpected_keyword_argument" | "extra_forbidden":
            known = [f.name for f in dataclasses.fields(_inner(cls, path[:-1]))]
            close = difflib.get_close_matches(path[-1], known, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"known are {_list(known)}"
            return f"{table} has an unknown key {path[-1]!r}; {hint}"
        case "missing" | "missing_argument":
            return f"{table} needs the key {path[-1]!r}"
        case "value_error":
            return f"{where}: {problem['ctx']['error']}" if where else str(problem["ctx"]["error"])
        case _:
            should = problem["msg"].removeprefix("Input ")
            value = problem["input"]
            shown = (
                text if len(text := repr(value)) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"
            )
            return f"{key} = {shown}: {should[0].lower()}{should[1:]}{_sweep_hint(value)}"


def _inner(cls: Any, path: Sequence[str]) -> Any:
    """The dataclass of a table within a table, as far as the types tell."""
    for key in path:
        kind = get_type_hints(cls).get(key)
        cls = next((k for k in (kind, *get_args(kind)) if dataclasses.is_dataclass(k)), cls)
    return cls


def _choice(file: Path, key: str, value: object, known: Sequence[str]) -> UserError:
    close = difflib.get_close_matches(str(value), known, 1)
    meant = f" (did you mean {close[0]!r}?)" if close else ""
    rest = f"it is one of {_list(known)}{_sweep_hint(value)}"
    return UserError(f"{file}: {key} = {value!r} is unknown{meant}; {rest}")


def _sweep_hint(value: object) -> str:
    return "; a list of values to try is for `testbed sweep`" if isinstance(value, list) else ""


def _list(names: Any) -> str:
    return ", ".join(map(str, names))


def _plain(instance: Any) -> dict[str, Any]:
    """A dataclass as TOML can say it, which has no word for None."""
    return dataclasses.asdict(
        instance, dict_factory=lambda items: {k: v for k, v in items if v is not None}
    )
