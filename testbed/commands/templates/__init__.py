"""What ``testbed new`` writes: files that run as they are, in which names are replaced."""
