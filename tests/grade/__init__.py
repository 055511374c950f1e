"""Tests of ``testbed.grade``."""
