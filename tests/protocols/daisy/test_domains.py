"""Groups by communication domain, footnote 5 of the paper."""

from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from scripts.reproductions.baldoni import domains
from scripts.reproductions.baldoni.claims import CLAIMS
from scripts.reproductions.baldoni.domains import FILE, Grouped, run, shuffled
from testbed.errors import UserError
from testbed.experiment import Scenario, load, parse, read_document
from testbed.experiment.network import Network
from testbed.protocols.daisy.tree import LEVEL, daisy
from tests import experiments
from tests.scripts.judged import hold_against

DOMAINS = (("a", "x"), ("b", "y"), ("a", "x"), ("c", "y"), ("c", "y"), ("x", "x"))


def test_a_stub_is_a_local_group_and_its_server_is_in_the_group_of_its_transit_domain() -> None:
    tree = daisy(6, 4, 3, domains=DOMAINS)
    assert tree.members == {
        **{0: (0, 2), 1: (1,), 2: (3, 4), 3: (5,)},
        **{LEVEL: (0, 5), LEVEL + 1: (1, 3)},
        2 * LEVEL: (0, 1),
    }
    assert tree.path(4) == (2, LEVEL + 1, 2 * LEVEL)
    assert daisy(6, 4, 2, domains=DOMAINS).members[LEVEL] == (0, 1, 3, 5)
    assert daisy(6, 4, 1, domains=DOMAINS).members == {0: (0, 1, 2, 3, 4, 5)}


def test_more_levels_than_there_are_domains_are_by_number() -> None:
    tree = daisy(6, 4, 4, domains=DOMAINS)
    assert len(tree.rosters[tree.path(0)[-1]]) == 6


def test_an_experiment_has_the_domains_of_its_network_and_a_run_says_its_groups(
    tmp_path: Path,
) -> None:
    (experiment,) = load(FILE)
    scenario = Scenario.of(experiment)
    again = Network.from_json(scenario.network.to_json())
    assert again.domains == scenario.network.domains == scenario.place(3).domains
    result = experiments.run(experiment, tmp_path)
    assert result.verdict.ok
    assert set(result.verdict.promises.local_groups) == {
        frozenset(n for n in range(54) if scenario.network.domains[n][0] == domain)
        for domain in {inner for inner, _ in scenario.network.domains}
    }


def test_a_network_without_domains_is_refused() -> None:
    document: dict[str, Any] = read_document(FILE)
    document["topology"] = {"model": "ring", "nodes": 5}
    with pytest.raises(UserError, match="takes a topology with domains, such as transit-stub"):
        Scenario.of(*parse(document, FILE))


def test_groups_by_domain_keep_traffic_off_the_transit_links() -> None:
    near, far = (run((Grouped(groups, 3), 1)) for groups in ("domains", "numbers"))
    assert near[0] < 0.7 * far[0]  # packets on transit links
    assert near[2] < 0.8 * far[2]  # delay


def test_processes_can_be_numbered_in_any_order() -> None:
    scenario = Scenario.of(*load(FILE))
    before, after = scenario.network, shuffled(scenario).network
    names = [nx.get_node_attributes(network.graph, "name") for network in (before, after)]
    assert sorted(names[0].values()) == sorted(names[1].values())
    assert list(after.graph) == list(range(54))
    assert before.domains != after.domains


BY_DOMAIN = [claim for claim in CLAIMS if "domain" in claim.says]


@pytest.mark.parametrize("claim", BY_DOMAIN, ids=lambda claim: claim.says)
def test_a_claim_holds_for_some_numbers_and_not_for_others(claim: Any) -> None:
    less, more = (1.0, 1.1, 1.0), (2.0, 2.2, 2.1)
    good = {
        Grouped(groups, levels): domains.Crossed(*[less if groups == "domains" else more] * 3)
        for groups in ("domains", "numbers")
        for levels in domains.GROUPED_ON
    }
    bad: Any = {
        point: {"transit": (3.0, 3.3, 3.2), "delay": (3.0, 3.3, 3.2)}
        for point in good
        if point.groups == "domains"
    }
    hold_against(claim, good, ([], [bad]))
