"""Exhaustive exploration of three processes with three tickets on leases, within limits."""
