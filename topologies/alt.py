"""GT-ITM's readable graph files (``.alt``), as its program ``sgb2alt`` writes them.

    GRAPH (#nodes #edges id uu vv ww xx yy zz):
    <nodes> <arcs> <id> [<scale> [<greatest transit, greatest stub and top diameter>]]

    VERTICES (index name u v w x y z):
    <index from 0> <name> <x> <y>

    EDGES (from-node to-node length a b):
    <i> <j> <length> [<policy weight>]

Each edge appears once although the head counts arcs, two for each edge. The reader goes by the
words GRAPH, VERTICES and EDGES, takes edges for arcs in the head, and does without places, lengths
and weights; of several edges between the same nodes it keeps the first, since there is one link at
most. What ``write_alt`` has written ``read_alt`` reads back as it was.
"""

import math
from collections.abc import Sequence
from pathlib import Path

from .graph import Graph, build_graph
from .textfile import TextLine, lines_of, read_text

_SECTIONS = ("GRAPH", "VERTICES", "EDGES")


def write_alt(graph: Graph, path: str | Path) -> None:
    """Write a graph to a file."""
    Path(path).write_text(encode_alt(graph), encoding="utf-8")


def read_alt(path: str | Path) -> Graph:
    """Read a graph from a file."""
    return decode_alt(read_text(path), str(path))


def encode_alt(graph: Graph) -> str:
    """Write a graph as text."""
    about = graph.graph
    scale = [about["scale"]] if "scale" in about else []
    head = [len(graph), 2 * graph.number_of_edges(), about.get("id") or about.get("model", "graph")]
    lines = [
        "GRAPH (#nodes #edges id uu vv ww xx yy zz):",
        _words(*head, *scale, *about.get("diameters", ())),
        "",
        "VERTICES (index name u v w x y z):",
    ]
    for node in range(len(graph)):
        place = graph.nodes[node]
        lines.append(_words(node, place["name"], place["x"], place["y"]))
    lines += ["", "EDGES (from-node to-node length a b):"]
    for i, j, its in graph.edges(data=True):
        lines.append(_words(min(i, j), max(i, j), its["length"], its.get("policy", 0)))
    return "\n".join(lines) + "\n"


def _words(*values: object) -> str:
    """Join words as GT-ITM does, a blank after each; whole numbers have no point."""
    return "".join(
        f"{int(value) if isinstance(value, float) and value.is_integer() else value} "
        for value in values
    )


def decode_alt(text: str, file: str = "graph") -> Graph:
    """Read a graph from text."""
    head, vertices, edges = _sections(text, file)
    names, points = _decode_vertices(vertices)
    _check_counts(head, len(vertices), len(edges))
    numbers = [int(word) for word in head.words[3:] if word.lstrip("-").isdigit()]
    graph = build_graph(
        names,
        points,
        [],
        model="file",
        tries=1,
        parameters={"path": file},
        **({"id": head.words[2]} if len(head.words) > 2 else {}),
        **({"scale": numbers[0]} if numbers else {}),
        **({"diameters": tuple(numbers[1:])} if numbers[1:] else {}),
    )
    for line in edges:
        _decode_edge(line, graph)
    return graph


def _sections(text: str, file: str) -> tuple[TextLine, list[TextLine], list[TextLine]]:
    found: dict[str, list[TextLine]] = {}
    section = ""
    for line in lines_of(text, file):
        title = line.words[0].rstrip(":").upper() if line.words else ""
        if title in _SECTIONS:
            section = title
            found[section] = []
        elif line.words and not section:
            raise line.error("a section title must come first: GRAPH, VERTICES or EDGES")
        elif line.words:
            found[section].append(line)
    missing = [title for title in _SECTIONS if title not in found]
    if missing:
        raise line.error(f"the file ends here, but the section {missing[0]} must follow")
    if len(found["GRAPH"]) != 1:
        raise line.error("the section GRAPH must have one line: nodes, arcs and id")
    return found["GRAPH"][0], found["VERTICES"], found["EDGES"]


def _check_counts(head: TextLine, vertices: int, edges: int) -> None:
    nodes, arcs = head.integer(0, "the number of nodes"), head.integer(1, "the number of arcs")
    if nodes != vertices:
        raise head.error(f"{nodes} nodes are announced, but {vertices} lines of VERTICES follow")
    if arcs not in (2 * edges, edges):
        raise head.error(
            f"{arcs} arcs are announced, two for each edge, but {edges} lines of EDGES follow"
        )


def _decode_vertices(lines: Sequence[TextLine]) -> tuple[list[str], list[tuple[float, float]]]:
    names, points = [], []
    for expected, line in enumerate(lines):
        index = line.integer(0, "the vertex index")
        if index != expected:
            raise line.error(f"the vertex index must be {expected}, not {index}")
        names.append(line.words[1] if len(line.words) > 1 else str(index))
        placed = len(line.words) > 3
        points.append((line.real(2, "x"), line.real(3, "y")) if placed else (0.0, 0.0))
    return names, points


def _decode_edge(line: TextLine, graph: Graph) -> None:
    i, j = (line.integer(k, f"the {which} node of the edge") for k, which in enumerate(_ENDS))
    for node in (i, j):
        if node not in graph:
            raise line.error(f"node {node} is unknown: nodes are 0 to {len(graph) - 1}")
    if i == j:
        raise line.error(f"the edge must join two nodes, not {i} to itself")
    length = line.real(2, "the length") if len(line.words) > 2 else _distance(graph, i, j)
    if not 0 <= length < math.inf:
        raise line.error(f"the length must be at least 0, not {length}")
    if not graph.has_edge(i, j):
        policy = line.integer(3, "the policy weight") if len(line.words) > 3 else 0
        graph.add_edge(i, j, length=length, **({"policy": policy} if policy else {}))


_ENDS = ("first", "second")


def _distance(graph: Graph, i: int, j: int) -> float:
    a, b = graph.nodes[i], graph.nodes[j]
    return float(round(math.hypot(a["x"] - b["x"], a["y"] - b["y"])))
