"""Settings of all tests."""

import os

from hypothesis import settings

# A loaded machine is no failure. CI draws the same examples each time; elsewhere they are fresh.
settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")
