"""Reproductions of papers: a package each, and what they share.

A reproduction runs points (``running``), judges what its paper claims by rules that are written down
beforehand (``claims``, ``intervals``), and returns a chapter (``chapter``), which the terminal
(``show``) and the book (``book``) show.
"""
