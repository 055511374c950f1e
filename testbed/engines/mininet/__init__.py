"""Mininet, Open vSwitch and Ryu on this machine's own kernel, in real time, as root."""
