"""Mistakes in the papers: experiments that go wrong as printed, and are right when repaired."""
