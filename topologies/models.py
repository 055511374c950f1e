"""The registry of graph models: the names that an experiment may give."""

from .channels import ExponentialChannels
from .files import File
from .flat import DoarLeslie, Exponential, Locality, PureRandom, Waxman1, Waxman2
from .graph import Model
from .hierarchical import Hierarchical
from .textbook import GridGraph, LineGraph, RingGraph, StarGraph
from .transit_stub import TransitStub

MODELS: dict[str, type[Model]] = {
    kind.model: kind
    for kind in (
        *(PureRandom, Waxman1, Waxman2, DoarLeslie, Exponential, Locality, Hierarchical),
        *(TransitStub, LineGraph, RingGraph, StarGraph, GridGraph, File, ExponentialChannels),
    )
}
