"""Networks as graphs: models, files, links, overlays, routes and figures.

Nothing here knows of protocols or engines, and only the two readers and the one writer of graph files
do any IO.

    models        GT-ITM's flat, hierarchical and transit–stub graphs, textbook graphs, files
    links         delay, bandwidth, queue and loss of every link
    overlays      hypercube and other graphs among processes
    groups        sets of processes that may overlap
    domains       who shares a stub or transit domain
    routing       shortest-path trees, the same for simulator and switches
    figures       degrees, distances, connectivity
"""

from .alt import decode_alt, encode_alt, read_alt, write_alt
from .domains import domains
from .errors import TopologyError
from .figures import Figures, describe
from .graph import Graph, Model
from .groups import GROUPINGS, Grouping, Groups, group_graph, has_cycle
from .itm import Specification, decode_itm, read_itm
from .level import Level
from .links import Links
from .models import MODELS
from .overlays import OVERLAYS, OverlayModel
from .routing import children, path, shortest_path_tree, shortest_path_trees

__all__ = [
    "GROUPINGS",
    "MODELS",
    "OVERLAYS",
    "Figures",
    "Graph",
    "Grouping",
    "Groups",
    "Level",
    "Links",
    "Model",
    "OverlayModel",
    "Specification",
    "TopologyError",
    "children",
    "decode_alt",
    "decode_itm",
    "describe",
    "domains",
    "encode_alt",
    "group_graph",
    "has_cycle",
    "path",
    "read_alt",
    "read_itm",
    "shortest_path_tree",
    "shortest_path_trees",
    "write_alt",
]
