"""The testbed: experiments, engines that run them, the oracle that checks them."""

__version__ = "0.1.0"
