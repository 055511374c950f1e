"""A run that one can stop, step through, go back in, and interfere with: ``testbed live``.

A run is simulated as a whole and written down step by step; a *step* is one thing that happens to one
process, with all that the process does then. So a page can go to any step, forwards and backwards.
What a person changes is a fault, such as a message that is dropped; the run is simulated again with it,
and is the same up to the moment at which the fault strikes. The faults make an experiment file that
``testbed run`` repeats on every engine.

The way through the modules: ``session`` reads the experiment and adds the faults, ``watched`` runs it
and watches, ``trace`` writes down, ``state`` and ``words`` make text of it, ``log_session`` does the
same for a run that was made before, and ``server`` shows it to a browser on this machine.
"""
