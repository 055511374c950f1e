"""The commands of ``testbed``, one a module, each with ``add_parser`` and its action."""
