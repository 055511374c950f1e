"""Programs that tests run in a guest: a datagram there and back, a switch, Mininet."""

import sys
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
PYTHON = sys.executable

# Runs a command in a guest: python -c OWNER RESULTS COMMAND…
OWNER = """
import signal
import sys
from pathlib import Path
from testbed.engines.virtual.guest import GuestSettings, run_guest
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
sys.exit(run_guest(sys.argv[2:], GuestSettings(results=Path(sys.argv[1]))).returncode)
"""
# Programs for the guest. Two network namespaces, connected directly or through a switch, a delay of
# 7 ms in one direction, and a datagram that goes there and back. Printed are the round trips in
# nanoseconds, and the wall clock; the first trip, which also resolves the address, is left out.
PRELUDE = """
import ctypes, os, socket, subprocess, sys, time

def ip(script, *options):
    subprocess.run(["ip", *options, "-batch", "-"], input=script, text=True, check=True)

def socket_in(namespace):
    with open(f"/run/netns/{namespace}") as file:
        assert ctypes.CDLL(None).setns(file.fileno(), 0x40000000) == 0
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
"""
WIRE = """
ip("netns add a\\nnetns add b\\nlink add va netns a type veth peer name vb netns b\\n")
"""
# The bridge learns addresses. The first packet of a flow goes up to ovs-vswitchd, which handles
# none if it believes in no CPU.
SWITCH = """
from testbed.engines.mininet.switches.daemons import open_vswitch
switch = open_vswitch()
switch.__enter__()
ip("netns add a\\nnetns add b\\n"
   "link add va netns a type veth peer name pa\\nlink add vb netns b type veth peer name pb\\n"
   "link set pa up\\nlink set pb up\\n")
subprocess.run("ovs-vsctl add-br s -- add-port s pa -- add-port s pb".split(), check=True)
"""
EXCHANGE = """
ip("addr add 10.0.0.1/24 dev va\\nlink set va up\\n", "-n", "a")
ip("addr add 10.0.0.2/24 dev vb\\nlink set vb up\\n", "-n", "b")
subprocess.run("tc -n a qdisc add dev va root netem delay 7ms".split(), check=True)
home = os.open("/proc/self/ns/net", os.O_RDONLY)
server, client = socket_in("b"), socket_in("a")
assert ctypes.CDLL(None).setns(home, 0x40000000) == 0
server.bind(("10.0.0.2", 7000))
client.settimeout(5)
if not os.fork():
    while True:
        server.sendto(*server.recvfrom(100))
for number in range(int(sys.argv[1])):
    time.sleep(0.05)
    sent = time.monotonic_ns()
    client.sendto(b"%d" % number, ("10.0.0.2", 7000))
    client.recv(100)
    if number:
        print("trip", time.monotonic_ns() - sent, time.time_ns())
"""
ECHO = PRELUDE + WIRE + EXCHANGE
FLOWS = """
print(subprocess.check_output(["ovs-dpctl", "dump-flows"], text=True))
"""
# Two processes that take turns, each by asking again and again whether it is its turn.
TURNS = """
import mmap, os
turn = mmap.mmap(-1, 1)
me = 0 if os.fork() else 1
for number in range(50):
    while turn[0] != me:
        os.getppid()
    turn[0] = 1 - me
print("done", me)
if me == 0:
    os.wait()
"""
MININET = """
from mininet.net import Mininet
from mininet.topo import SingleSwitchTopo
from testbed.engines.mininet.switches.daemons import open_vswitch
with open_vswitch():
    net = Mininet(SingleSwitchTopo(2), controller=None)
    net.start()
    net.get("s1").cmd("ovs-ofctl add-flow s1 actions=NORMAL")
    print("lost", net.pingAll(timeout="2"))
    net.stop()
"""


def round_trips(stdout: str) -> list[int]:
    lines = (line.split() for line in stdout.splitlines())
    return [int(words[1]) for words in lines if words[:1] == ["trip"]]
