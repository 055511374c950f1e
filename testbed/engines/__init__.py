"""The engines: what drives the protocols, each in a package of its own."""
