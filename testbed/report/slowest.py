"""The slowest messages of a run, and what their delays consist of, as a table of the page."""

from __future__ import annotations

from testbed.report.tables import ROWS, write_table
from testbed.report.ways import PARTS
from testbed.runs.results import Results


def slowest_messages(run: Results) -> str:
    """The messages that took the longest to get everywhere, each where it came last."""
    delays = run.delays[run.delays["node"] != run.delays["source"]]
    order = ["delay", "source", "seq", "node"]
    slow = delays.sort_values(order, ascending=[False, True, True, True])
    slow = slow.drop_duplicates(["source", "seq"]).head(ROWS)
    if slow.empty:
        return ""
    parts = {name: title for name, title in PARTS.items() if (slow[name] != 0).any()}
    keys = ["node", "source", "seq"]
    causes = run.deliveries[[*keys, "cause_source", "cause_seq"]].drop_duplicates(keys)
    rows = []
    for row in slow.merge(causes, on=keys, how="left").fillna(-1).to_dict("records"):
        node, source, seq, *cause = (
            int(row[name]) for name in (*keys, "cause_source", "cause_seq")
        )
        rows.append(
            [
                _link(source, seq, node),
                str(node),
                *(_ms(row[name]) for name in ("delay", *parts)),
                f"{int(row['hops'])}",
                _link(cause[0], cause[1], node) if cause[0] >= 0 else "–",
            ]
        )
    heads = ["message", "last at process", "delay (ms)", *parts.values(), "links", "waited for"]
    caption = (
        f"Slowest messages, {len(rows)} of {len(run.messages)}: their longest delay and what it "
        "consists of, in milliseconds. A message leads to its way in the diagram."
    )
    return write_table(heads, rows, caption, " ".ljust(len(heads), "n"))


def _link(source: int, seq: int, process: int) -> str:
    return f'<a href="#m({source},{seq})@{process}">m({source},{seq})</a>'


def _ms(nanoseconds: float) -> str:
    return f"{int(nanoseconds) / 1e6:,.6f}"
