"""The group layer: membership with views, causal broadcast in each, stability; see ``group``."""
