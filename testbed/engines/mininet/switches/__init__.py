"""Open vSwitch: its daemons, and the bridges that a plan needs."""
