"""``testbed topology``: generate an experiment's network, draw it, print its figures and groups."""

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from testbed.commands.terminal import console, new_table, print_json
from testbed.errors import UserError
from testbed.experiment import load
from testbed.experiment.network import Network, build_network
from testbed.protocols import NS_PER_MS
from testbed.topologies import GROUPINGS, MODELS, OVERLAYS, Groups, describe, has_cycle, write_alt

DRAWN = (".png", ".svg")


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "topology",
        description="Generate the network of an experiment file from its seed, exactly as a run "
        "does, and print its figures: degree, diameter, mean distance, connectivity. "
        f"Models: {', '.join(MODELS)}. Overlays: {', '.join(OVERLAYS)}. "
        f"Groups: {', '.join(GROUPINGS)}.",
    )
    parser.add_argument("file", type=Path, help="experiment file (TOML)")
    parser.add_argument("--seed", type=int, help="use this seed instead of the file's")
    parser.add_argument(
        "--output",
        "-o",
        type=Path,
        metavar="FILE",
        help="draw it to a .png or .svg file, or write it as GT-ITM's .alt",
    )
    parser.add_argument(
        "--links", action="store_true", help="also list every link with its delay and bandwidth"
    )
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Print the figures of the network, and of the overlay if a protocol uses one."""
    suffix = options.output.suffix.lower() if options.output else None
    if suffix not in (None, ".alt", *DRAWN):
        raise UserError(f"{options.output}: write to a file ending in .png, .svg or .alt")
    experiments = load(options.file, seed=options.seed)
    experiment = next((e for e in experiments if e.protocol.needs_overlay), experiments[0])
    network = build_network(experiment)
    figures = {"network": describe(network.graph)}
    if network.overlay is not None:
        figures["overlay"] = describe(network.overlay)
    if suffix == ".alt":
        write_alt(network.graph, options.output)
    elif suffix in DRAWN:
        from testbed.report.network_plot import draw_topology  # Matplotlib takes a second to import

        draw_topology(network.graph, network.overlay, options.output)
    if options.json:
        content: dict[str, Any] = {name: asdict(figure) for name, figure in figures.items()}
        if network.groups:
            members = {name: sorted(group) for name, group in network.groups.items()}
            content["groups"] = {"members": members, "cycle": has_cycle(network.groups)}
        if options.links:
            content["links"] = [{"link": [a, b], **link} for a, b, link in links_of(network)]
        print_json(content)
    else:
        show(experiment, figures, options.output)
        show_groups(network.groups)
        if options.links:
            show_links(links_of(network))
    return 0


def show(experiment: Any, figures: dict[str, Any], output: Path | None) -> None:
    """A column for the network and one for the overlay."""
    out = console()
    out.print(
        f"[bold]{experiment.topology.model}[/] network, {experiment.overlay.model} overlay, "
        f"seed {experiment.seed}"
    )
    table = new_table([""], figures)
    columns = [asdict(figure) for figure in figures.values()]
    for key in columns[0]:
        table.add_row(key.replace("_", " "), *(_format(column.get(key)) for column in columns))
    out.print(table)
    if output:
        out.print(f"written: {output}", soft_wrap=True)


def show_groups(groups: Groups) -> None:
    """Every group with its members, and whether the graph of groups has a cycle."""
    if not groups:
        return
    out = console()
    out.print(
        f"[bold]{len(groups)} groups[/], their graph has {'a' if has_cycle(groups) else 'no'} cycle"
    )
    for name, members in groups.items():
        out.print(f"  {name}  {' '.join(map(str, sorted(members)))}", highlight=False)


def links_of(network: Network) -> list[tuple[int, int, dict[str, Any]]]:
    """Every link, by its ends in ascending order; channels without links have no delay to tell."""
    links = ((min(a, b), max(a, b), link) for a, b, link in network.graph.edges(data=True))
    return [
        (
            a,
            b,
            {
                "delay_ms": link["delay_ns"] / NS_PER_MS,
                "bandwidth_mbit": link["bandwidth_bps"] / 1e6,
            },
        )
        for a, b, link in sorted(links, key=lambda link: link[:2])
        if "delay_ns" in link
    ]


def show_links(links: list[tuple[int, int, dict[str, Any]]]) -> None:
    """A row for each link."""
    table = new_table(["link"], ["delay (ms)", "bandwidth (Mbit/s)"])
    for a, b, link in links:
        table.add_row(f"{a} – {b}", f"{link['delay_ms']:,.3f}", f"{link['bandwidth_mbit']:g}")
    console().print(table)


def _format(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:,.3f}" if isinstance(value, float) else str(value)
