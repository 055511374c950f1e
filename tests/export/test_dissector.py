"""tshark with the generated dissector shows, field by field, what the codecs encode."""

import shutil
import struct
import subprocess
from binascii import crc_hqx
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from testbed.export.dissector import dissector, header_layout, layouts_of, names
from testbed.export.layouts import CHANNEL, WORDS
from testbed.protocols import PROTOCOLS, Message, Protocol
from testbed.protocols.channel.segments import ACK_KIND, ChannelHeader, Segment
from testbed.protocols.groups import passed
from testbed.protocols.groups.view import ViewId
from testbed.protocols.ks import KSMessage
from testbed.protocols.ks_log import members
from testbed.protocols.wire import HEADER
from tests.command_line import CommandLine
from tests.export.reading import Reader
from tests.protocols.groups import test_messages as group_layer
from tests.protocols.test_wire import RUN, messages

N = group_layer.PROCESSES
Shown = dict[str, list[Any]]
U32 = st.integers(0, 2**32 - 1)
channels = st.builds(
    ChannelHeader,
    incarnation=st.integers(0, 4095),
    receiver=st.integers(0, 4095),
    stream=st.integers(1, 127),
    number=U32,
    ack=U32,
    beyond=st.integers(0, 2**40),
)


@st.composite
def drawn(draw: st.DrawFn, protocol: type[Protocol], kind: type[Message]) -> bytes:
    """An encoded message of a kind, perhaps in a segment of the reliable channel."""
    if set(passed.KINDS) <= set(protocol.messages):
        message = draw(group_layer.messages.filter(lambda each: type(each) in protocol.messages))
    else:
        message = draw(messages(kind, N))
    if draw(st.booleans()):
        message = Segment.of(message, draw(channels))
    return protocol.codec(RUN, N).encode(message)


@st.composite
def acknowledgements(draw: st.DrawFn) -> bytes:
    header = draw(channels)._replace(number=None)
    return PROTOCOLS["timestamp"].codec(RUN, N).encode(Segment(0, 0, channel=header))


def some(strategy: st.SearchStrategy[bytes], count: int) -> list[bytes]:
    """Some datagrams of a strategy."""
    found: list[bytes] = []

    @settings(max_examples=count, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(strategy)
    def collect(data: bytes) -> None:
        found.append(data)

    collect()
    return found


@pytest.fixture(scope="module")
def datagrams() -> list[bytes]:
    """Messages of all protocols, and of each of their kinds."""
    found = some(acknowledgements(), 5)
    for protocol in PROTOCOLS.values():
        on_groups = set(passed.KINDS) <= set(protocol.messages)
        for kind in protocol.messages[:1] if on_groups else protocol.messages:
            found += some(drawn(protocol, kind), 40 if on_groups else 5)
    return found


def read(data: bytes) -> Shown:
    """The fields of a message by the layouts, without tshark."""
    found: Shown = defaultdict(list)
    header = HEADER.unpack_from(data)
    fields = dict(zip((f.name for f in header_layout()), header[2:], strict=True))  # type: ignore[union-attr]
    kinds = next(layouts_of(p) for p in PROTOCOLS.values() if p.wire_id == fields["protocol"])
    start = HEADER.size + 4 * fields["channel_words"]
    end = HEADER.size + fields["control_size"]
    channel = Reader(data[HEADER.size : start], N, kinds)
    control = Reader(data[start:end], N, kinds)
    values = [*fields.items()]
    if channel.data:
        values += channel.read(CHANNEL, {"numbered": fields["kind"] != ACK_KIND}, "channel.")
    if control.data:
        values += control.read(kinds[fields["kind"]][1], {})
    if data[end:]:
        values.append(("payload", data[end:]))
    assert not channel.data
    assert not control.data
    for name, value in values:
        found[name].append(value.hex() if isinstance(value, bytes) else value)
    return dict(found)


KINDS = [(name, kind) for name, protocol in PROTOCOLS.items() for kind in protocol.messages]


@settings(max_examples=10, suppress_health_check=list(HealthCheck))
@given(data=st.data())
@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_a_layout_has_the_values_of_the_message(
    name: str, kind: type[Message], data: st.DataObject
) -> None:
    protocol = PROTOCOLS[name]
    encoded = data.draw(drawn(protocol, kind).filter(lambda each: not each[5]))
    message, found = protocol.codec(RUN, N).decode(encoded), read(encoded)
    if isinstance(message, KSMessage):  # a set as bits
        message = replace(message, dests=tuple(members(message.dests)))  # type: ignore[arg-type]
    for attribute, values in found.items():
        expected = plain(getattr(message, attribute, None))
        if expected is not None:  # what is attached to the message comes before its own
            assert values[len(values) - len(expected) :] == expected


def plain(value: Any) -> list[int] | None:
    """The integers of an attribute that is a number, a vector or a set of processes."""
    if isinstance(value, ViewId):
        return [value.number]
    if isinstance(value, np.ndarray):
        return [int(each) for each in value.ravel()]
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, tuple) and all(isinstance(each, int) for each in value):
        return [*value]
    return [int(value)] if isinstance(value, int) else None


def capture(file: Path, datagrams: Iterable[bytes]) -> None:
    """A pcap file of UDP datagrams over IP."""
    with file.open("wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 18, 101))
        for data in datagrams:
            udp = struct.pack("!HHHH", 4000, 4000, 8 + len(data), 0) + data
            addresses = bytes([10, 0, 0, 1, 10, 0, 0, 2])
            ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0) + addresses
            out.write(struct.pack("<IIII", 1, 0, len(ip + udp), len(ip + udp)) + ip + udp)


def all_names() -> list[str]:
    layouts = [header_layout(), WORDS]
    layouts += [layout for p in PROTOCOLS.values() for _, layout in layouts_of(p).values()]
    found = {name for layout in layouts for name, _ in names(layout)}
    return sorted({*found, *(name for name, _ in names(CHANNEL, "channel.")), "payload"})


def seen_by_tshark(file: Path, script: Path, *fields: str) -> list[list[str]]:
    wanted = [option for field in fields for option in ("-e", field)]
    command = ["tshark", "-r", str(file), "-X", f"lua_script:{script}", "-o", f"co.processes:{N}"]
    done = subprocess.run(
        [*command, "-T", "fields", "-E", "occurrence=a", *wanted],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Lua" not in done.stderr.replace("Running as user", ""), done.stderr
    return [line.split("\t") for line in done.stdout.split("\n")[:-1]]


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    file = tmp_path_factory.mktemp("dissector") / "causal.lua"
    file.write_text(dissector())
    return file


def test_tshark_shows_every_field(script: Path, datagrams: list[bytes]) -> None:
    kinds = {(data[3], data[4]) for data in datagrams}
    assert {PROTOCOLS["daisy"].wire_id, PROTOCOLS["cluster"].wire_id} < {each for each, _ in kinds}
    file = script.with_suffix(".pcap")
    capture(file, datagrams)
    every = all_names()
    lines = seen_by_tshark(file, script, *(f"co.{name}" for name in every), "_ws.expert")
    assert len(lines) == len(datagrams)
    for data, (*values, expert) in zip(datagrams, lines, strict=True):
        shown = {name: value for name, value in zip(every, values, strict=True) if value}
        expected = {name: ",".join(map(str, each)) for name, each in read(data).items()}
        assert shown == expected
        assert expert == ""


def test_malformed_messages_do_not_stop_it(script: Path, datagrams: list[bytes]) -> None:
    broken, seed = [], Random(1)
    for data in datagrams:
        changed = bytearray(data[: seed.randrange(32, len(data) + 1)])
        for _ in range(3):
            changed[seed.randrange(3, len(changed))] = seed.randrange(256)
        broken.append(bytes(changed))
    file = script.with_suffix(".pcap")
    capture(file, broken)
    lines = seen_by_tshark(file, script, "co.source", "co.seq", "_ws.expert")
    assert len(lines) == len(broken)
    for data, (source, seq, expert) in zip(broken, lines, strict=True):
        header = HEADER.unpack_from(data)
        assert (source, seq) == (str(header[7]), str(header[9]))
        zeroed = data[:14] + bytes(2) + data[16:]  # one in 65,536 has the right check all the same
        assert expert or crc_hqx(zeroed, 0) == int.from_bytes(data[14:16])


def test_entries_of_vectors_have_fields_of_their_own(script: Path) -> None:
    timestamp = PROTOCOLS["timestamp"]
    kind = timestamp.messages[0]
    message = kind(3, 7, vector=np.arange(10, 10 + N))  # type: ignore[call-arg]
    file = script.with_suffix(".pcap")
    capture(file, [timestamp.codec(RUN, N).encode(message), b"not a message"])
    fields = ("co.vector.0", "co.vector.8", "_ws.col.Info", "_ws.col.Protocol")
    first, second = seen_by_tshark(file, script, *fields)
    assert first == ["10", "18", "timestamp VectorMessage m(3,7), 36 B control", "CO"]
    assert second[3] == "UDP"


def test_the_command_writes_it(tmp_path: Path, testbed: CommandLine) -> None:
    assert testbed("dissector").out == dissector()
    testbed("dissector", "-o", tmp_path / "co.lua")
    assert (tmp_path / "co.lua").read_text() == dissector()
    assert "cannot be written" in testbed("dissector", "-o", tmp_path / "no/co.lua", status=2).err
