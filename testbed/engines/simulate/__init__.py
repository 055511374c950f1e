"""The simulator: the protocols themselves over store-and-forward links, in exact virtual time."""
