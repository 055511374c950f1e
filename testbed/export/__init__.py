"""A run in the formats of other tools: Wireshark, ShiViz, TSViz, Perfetto."""
