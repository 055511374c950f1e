"""What Friedman & Manor claim, and by which rule that is judged."""

from scripts.reproductions.claims import Claim
from scripts.reproductions.friedman import analysis, judges, scans
from scripts.reproductions.friedman.judges import Results

DELAY = ("mean delay", "longest delay")
QUEUE = ("mean queue", "longest queue")
LOADS = (
    "mean load in bytes",
    "mean load in packets",
    "longest link queue in bytes",
    "longest link queue in packets",
)
MEAN_LOADS = LOADS[:2]
ANALYSIS: tuple[Claim[Results], ...] = (
    Claim("4, Table 1", "a message is sent O(n log n) times by Overlay, without control information, "
          "and n times with O(n) by Timestamp", analysis.table_1()),
    Claim("4", "Overlay is better roughly when d < n/(log n - 1)", analysis.break_even_holds()),
    Claim("4", "with a hypercube, Overlay can overcome log n failures",
          analysis.survives(analysis.LOG)),
    Claim("7", "the protocol runs well as long as fewer than log n nodes fail",
          analysis.survives(analysis.BELOW)),
    Claim("4, 7 (what can be promised)", "it overcomes one failure fewer than the overlay's "
          "connectivity", analysis.survives(analysis.SOUND)),
    Claim("6", "with 2^n + 1 nodes, one has a single neighbour in HyperCast's cube, and not here",
          analysis.hypercast_is_weak()),
    Claim("6", "flooding a flat clique is less scalable: O(n²) sends", analysis.clique_is_dear()),
)  # fmt: skip
DELAYS: tuple[Claim[Results], ...] = (
    *(Claim("5.2, Fig. 3", f"data 0: Overlay delivers much faster ({key})", judges.less(key, 0))
      for key in DELAY),
    Claim("5.2, Fig. 4", "data 100: the difference decreases",
          judges.gains("mean delay", 0, 100)),
    *(Claim("5.2, Fig. 5", f"data 1000: Timestamp becomes faster ({key})", judges.more(key, 1000))
      for key in DELAY),
    Claim("5.2", "Overlay's delay is more influenced by the size of data", judges.more_influenced()),
)  # fmt: skip
COSTS: tuple[Claim[Results], ...] = (
    *(Claim(f"5.2, Fig. {figure}", f"data {data}: Timestamp generates fewer messages",
            judges.more("messages", data)) for figure, data in ((6, 0), (7, 100), (8, 1000))),
    Claim("5.2, Fig. 6", "data 0: Overlay uses fewer bytes", judges.less("bytes", 0)),
    Claim("5.2, Fig. 7", "data 100: Overlay uses fewer bytes", judges.less("bytes", 100)),
    Claim("5.2, Fig. 8", "data 1000: Overlay sends more bytes", judges.more("bytes", 1000)),
    *(Claim(f"5.2, Fig. {figure}", f"data {data}: Timestamp takes fewer hops",
            judges.more("hops", data)) for figure, data in ((9, 0), (10, 100), (11, 1000))),
)  # fmt: skip
QUEUES: tuple[Claim[Results], ...] = (
    Claim("5.2, Figs. 12-14", "Overlay's delivery queues are always empty", judges.always_empty()),
    *(Claim(f"5.2, Fig. {figure}", f"data {data}: Timestamp's delivery queues become longer with n "
            f"({key})", judges.grows(key, data))
      for figure, data in ((12, 0), (13, 100), (14, 1000)) for key in QUEUE),
    *(Claim("5.2, Fig. 12", f"the same where the links can carry the load ({key})",
            judges.grows_when_carried(key)) for key in QUEUE),
    *(Claim("5.2, Figs. 12-14", f"data size has little effect on Timestamp's queues ({key})",
            judges.little_effect(key)) for key in QUEUE),
)  # fmt: skip
LOAD: tuple[Claim[Results], ...] = (
    *(Claim("5.2, Fig. 15", f"data 0: Timestamp has the larger mean load ({key})",
            judges.less(key, 0)) for key in MEAN_LOADS),
    Claim("5.2, Fig. 15", "Overlay has a high maximum queue size and a low mean", judges.peaks()),
    *(Claim("5.2, Fig. 16", f"as data grow, Overlay's increase in comparison ({key})",
            judges.gains(key, 0, 100)) for key in LOADS),
    *(Claim("5.2, Fig. 17", f"as data grow further, they increase further ({key})",
            judges.gains(key, 100, 1000)) for key in LOADS),
    *(Claim("5.2, Fig. 17", f"data 1000: Overlay has more ({key})", judges.more(key, 1000))
      for key in LOADS),
)  # fmt: skip
SCANS: tuple[Claim[Results], ...] = (
    Claim("5.1 (open)", "data 0: Overlay is faster, however long senders send",
          scans.less_however_long("mean delay")),
    *(Claim("5.1 (open)", f"Timestamp's queues grow with n, however long senders send ({key})",
            scans.grows_however_long(key)) for key in QUEUE),
    *(Claim("5.1", f"data {data}: {words}, whatever the edge probability",
            scans.whatever_edges(key, data, sign))
      for words, key, data, sign in (
          ("Overlay is faster", "mean delay", 0, "<"),
          ("Timestamp is faster", "mean delay", 1000, ">"),
          ("Overlay loads the network less, in bytes", "mean load in bytes", 0, "<"),
          ("Overlay loads the network more, in bytes", "mean load in bytes", 1000, ">"),
      )),
)  # fmt: skip
CLAIMS = (*ANALYSIS, *DELAYS, *COSTS, *QUEUES, *LOAD, *SCANS)
