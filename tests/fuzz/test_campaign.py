"""A campaign: a seed repeats all that it tries, and none of it is beyond the promises."""

import re

from testbed.fuzz import Batch, Origin, Tally, experiments, try_batch
from testbed.fuzz.corpus import scenes
from testbed.fuzz.profiles import profile_of
from testbed.fuzz.profiles.plain import resolved
from testbed.protocols import PROTOCOLS

DAISY = PROTOCOLS["daisy"]
SEED = 3


def test_a_seed_tries_the_same_again_and_all_are_within_the_promises() -> None:
    runs = [[*experiments(DAISY, Origin(SEED))] for _ in range(2)]
    assert runs[0] == runs[1]
    profile = profile_of(DAISY)
    for document, trial in runs[0]:
        assert profile.promised(resolved(document))
        assert trial.wrong is None, trial.sentence
    names = [document["name"] for document, _ in runs[0]]
    assert len({*names}) == len(names)
    assert {re.sub("-(mutant|storm|scene)-.*|-replay", "", name) for name in names} == {names[0]}
    assert sum(name.endswith("-replay") for name in names) == 1
    assert sum("-storm-" in name for name in names) == profile.storms
    assert 0 < sum("-mutant-" in name for name in names) <= profile.mutants
    scenes_ = {name.rsplit("-", 1)[0] for name in names if "-scene-" in name}
    assert len(scenes_) == profile.scenes


def test_scenes_are_varied_one_by_one_and_come_from_the_corpus_that_is_given() -> None:
    one = scenes()["daisy-never-heard"]
    varied = [
        e.document
        for e in experiments(DAISY, Origin(SEED), [one])
        if "-scene-" in e.document["name"]
    ]
    assert varied
    assert all(document["links"] == one["links"] for document in varied), "there is no other"


def test_every_scene_is_tried_as_it_stands_by_one_of_so_many_seeds() -> None:
    """So a mistake that is made again is found, however rarely a mutant of its scene shows it."""
    corpus = [*scenes().values()][:3]

    def replayed(seed: int) -> str:
        replays = (
            e.document
            for e in experiments(DAISY, Origin(seed), corpus)
            if e.document["name"].endswith("-replay")
        )
        return str({**next(replays), "name": ""})

    found = {replayed(seed) for seed in (1, 2, 3)}
    assert found == {str({**scene, "name": ""}) for scene in corpus}


def test_runs_are_counted() -> None:
    tally = try_batch(Batch("daisy", (Origin(SEED),)))
    assert tally.runs == len([*experiments(DAISY, Origin(SEED))])
    total = Tally("daisy")
    total.add(tally)
    total.add(tally)
    assert (total.seeds, total.runs) == (2, 2 * tally.runs)
