"""What Chandra, Gambhire & Kshemkalyani claim, and by which rule that is judged."""

from scripts.reproductions.chandra import judges, shapes
from scripts.reproductions.chandra.points import ALL
from scripts.reproductions.chandra.readings import BOTH, KS_PRIME, Curves
from scripts.reproductions.claims import Claim

SMALL = (1, 4)  # of Figs. 6-8: the settings with few processes
LARGE = (2, 3)
FIVES = '"about" is taken as rounded to the nearest 5'
WHOLE = "a whole number of per cent is taken as rounded"
SCALE: tuple[Claim[Curves], ...] = (
    Claim("4.1, Fig. 3", "100 processes: \"for all the simulations of KS, the overhead is only 4 "
          "percent\"", judges.each_within(100, 3.5, 4.5, WHOLE)),
    Claim("5", "100 processes: \"less than 4 percent\"",
          judges.each_within(100, 0, 4, "\"less than\"")),
    Claim("4.1, Fig. 3", "15 processes: KS about 25 percent",
          judges.mean_within(15, 22.5, 27.5, FIVES)),
    Claim("4.1, Fig. 3", "15 processes: KS' about 15 percent",
          judges.mean_within(15, 12.5, 17.5, FIVES, KS_PRIME)),
    Claim("4.1, Fig. 3", "the percentage falls as n grows", judges.falls_with_n()),
    Claim("4.1, 5", "the overhead is almost linear in n", judges.almost_linear()),
    Claim("4.1, Fig. 3", "unaffected by whether a send event is a unicast or a multicast (S1, S3, "
          "S4)", judges.alike()),
    Claim("4.1, Fig. 3", "for small n, KS' is much more efficient",
          judges.prime_is_less(3, ALL, "n = 10 and 15", (10, 15))),
    Claim("4.1, Fig. 3", "for high n, KS outperforms KS'",
          judges.prime_is_less(3, ALL, "n = 100", (100,), more=True)),
    Claim("4.1, Fig. 3", "for high n the curves are close together", judges.closer_when_large()),
    Claim("4.1, Fig. 3", "the threshold of S3 is n = 62", judges.threshold(3, 62)),
    Claim("4.1, Fig. 3", "the threshold of S4 is n = 45", judges.threshold(4, 45)),
)  # fmt: skip
TIMES: tuple[Claim[Curves], ...] = (
    Claim("4.2, Fig. 4", "n = 15: never more than 35 percent (S1, S2, and what must be S4)",
          shapes.always_below(4, (1, 2, 4), 35, "MTT")),
    Claim("4.2, Fig. 4", "n = 40: always less than 11 percent (what must be S3)",
          shapes.always_below(4, (3,), 11, "MTT")),
    Claim("4.2, Fig. 4", "as MTT grows, first rises, then is steady", shapes.rises_then_steady()),
    Claim("4.2, Fig. 4", "KS' noticeably outperforms KS in S1, S2 and S4",
          judges.prime_is_less(4, (1, 2, 4))),
    Claim("4.2, Fig. 4", "KS' and KS are very close together in S3", shapes.close(4, 3)),
    Claim("4.2, Fig. 4", "more multicasts do not affect the overhead (S1, S4)",
          shapes.unaffected_by_multicasts()),
    Claim("4.3, Fig. 5", "n = 20: KS less than 20 percent",
          shapes.always_below(5, (2, 3, 4), 20, "MIMT")),
    Claim("4.3, Fig. 5", "n = 20: KS' less than 12 percent",
          shapes.always_below(5, (2, 3, 4), 12, "MIMT", KS_PRIME)),
    Claim("4.3, Fig. 5", "almost constant, in S1 and S4 everywhere", shapes.constant(5, SMALL)),
    Claim("4.3, Fig. 5", "almost constant, in S2 and S3 but for low MIMT",
          shapes.constant(5, LARGE, where="MIMT from 200 ms on", since=200)),
    Claim("4.3", "almost constant beyond 1,200 ms (S3, S4)",
          shapes.constant(5, (3, 4), where="MIMT from 1,200 to 12,000 ms", since=1200)),
    Claim("4.3, Fig. 5", "KS' is noticeably lower in all cases", judges.prime_is_less(5, ALL)),
)  # fmt: skip


def frequencies(figure: int, varied: str) -> tuple[Claim[Curves], ...]:
    """What is said of three ways to vary how often messages are multicast."""
    where = f"4.4, Fig. {figure}"
    return (
        Claim(where, f"{varied} growing: KS is constant in S2 and S3",
              shapes.constant(figure, LARGE)),
        Claim(where, f"{varied} growing: KS shows a very slight decrease in S1 and S4",
              shapes.falls_slightly(figure, SMALL)),
        Claim(where, f"{varied} growing: KS' is unaffected",
              shapes.constant(figure, ALL, KS_PRIME)),
    )  # fmt: skip


CLAIMS: tuple[Claim[Curves], ...] = (
    *SCALE,
    *TIMES,
    *frequencies(6, "M/T"),
    Claim("4.4, Fig. 6", "KS' is lower than KS", judges.prime_is_less(6, ALL)),
    *frequencies(7, "|Dests|/n"),
    Claim("4.4, Fig. 7", "S2: KS' almost equal or marginally lower", shapes.close(7, 2, 0.9, 1)),
    *frequencies(8, "B/T"),
    Claim("4.4, Fig. 8", "KS' is lower than KS in S1, S3 and S4",
          judges.prime_is_less(8, (1, 3, 4))),
    Claim("4.4, Fig. 8", "S2: KS' has marginally more overhead than KS",
          shapes.close(8, 2, 1, 1.1)),
    *(Claim("1, 4", f"logs follow the same pattern as messages, {whose}",
            shapes.log_follows(whose)) for whose in BOTH),
    Claim("1", "the time overhead follows the same pattern", shapes.no_time()),
    Claim("4", "ten runs differ by no more than a percent", shapes.runs_agree()),
)  # fmt: skip
