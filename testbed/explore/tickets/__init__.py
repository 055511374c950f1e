"""Everything that can happen to three processes on leases with three tickets, within limits."""
