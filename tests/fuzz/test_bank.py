"""The bank of daisies with a mistake: each shows in a scene of the corpus.

For those that ``testbed fuzz`` finds soon there is also a seed.
"""

import pytest

from scripts.benchmarks.fuzz import others_scenes
from testbed.fuzz import Origin, attempt, experiments
from testbed.fuzz.corpus import scenes
from testbed.protocols.broken import BROKEN
from testbed.protocols.daisy import Daisy

DAISIES = [name for name, protocol in BROKEN.items() if issubclass(protocol, Daisy)]


EXAMPLES = {
    "broken-reentrant": ("gap", "daisy-answered-while-handed-up"),
    "broken-hospitable": ("order", "daisy-left-and-kept-for-above"),
    "broken-homebound": ("gap", "daisy-found-by-another-group"),
    "broken-mute": ("loss", "daisy-back-before-it-was-gone"),
    "broken-dismissive": ("loss", "daisy-split-off-and-given-up"),
    "broken-timeless": ("order", "daisy-known-by-reports"),
    "broken-amnesiac": ("gap", "daisy-restarted-and-entered-what-it-was"),
    "broken-ageless": ("unrepaired", "daisy-restarted-with-less-backing"),
    "broken-undecided": ("unrepaired", "daisy-back-before-it-left"),
    "broken-idle": ("loss", "daisy-server-leaves"),
    "broken-releasing": ("gap", "daisy-released-between-groups"),
    "broken-trusting": ("loss", "daisy-never-heard"),
    "broken-reassured": ("unrepaired", "daisy-waits-to-send"),
    "broken-copied": ("gap", "daisy-k-copies"),
    "broken-servers-vector": ("loss", "daisy-early-vectors"),
    "broken-overtaking": ("gap", "daisy-overtaken-from-above"),
    "broken-deaf": ("loss", "daisy-split-while-it-stood-still"),
    "broken-discarding": ("gap", "daisy-started-again"),
    "broken-halting": ("loss", "daisy-waits-in-vain"),
    "broken-absentminded": ("order", "daisy-comes-back-without-a-past"),
    "broken-eager": ("unrepaired", "daisy-behind-for-ever"),
    "broken-awaiting": ("loss", "daisy-waits-for-a-view-given-up"),
    "broken-lingering": ("error", "daisy-asked-after-it-left"),
    "broken-prompt": ("gap", "daisy-cut-off-as-it-came-back"),
    "broken-short-sighted": ("order", "daisy-back-among-those-who-were-cut-off"),
    "broken-homing": ("order", "daisy-back-by-a-shorter-way"),
    "broken-nostalgic": ("error", "daisy-back-in-a-group-that-was-split-off"),
    "broken-confusing": ("loss", "daisy-split-off-and-cut-off"),
    "broken-bequeathing": ("unrepaired", "daisy-all-leave-but-who-joins"),
    "broken-mistaking": ("gap", "daisy-restarted-and-last-to-have-it"),
    "broken-ignoring": ("loss", "daisy-moved-out-of-reach"),
    "broken-recanting": ("loss", "daisy-answered-another"),
    "broken-abandoning": ("loss", "daisy-left-before-it-was-admitted"),
    "broken-impetuous": ("gap", "daisy-brought-astray"),
    "broken-heedless": ("gap", "daisy-cut-off-with-the-server"),
    "broken-overlooking": ("gap", "daisy-kept-by-those-who-are-cut-off"),
    "broken-wavering": ("loss", "daisy-said-goodbye-and-stayed"),
    "broken-misguiding": ("loss", "daisy-comes-back-alone"),
    "broken-claiming": ("loss", "daisy-absent-and-in-another-group"),
    "broken-careless": ("loss", "daisy-let-go-while-it-was-relayed"),
    "broken-departing": ("loss", "daisy-left-before-the-others-were-back"),
}

SEEDS = {"broken-undecided": 15, "broken-trusting": 6}


def test_every_daisy_has_an_example() -> None:
    assert set(EXAMPLES) == set(DAISIES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_mistake_shows_and_the_right_daisy_passes(name: str) -> None:
    wrong, scene = EXAMPLES[name]
    document = scenes()[scene]
    protocol = {**document["protocol"], "name": name}
    broken, right = (
        attempt(d, beyond=True) for d in ({**document, "protocol": protocol}, document)
    )
    assert broken is not None
    assert right is not None
    assert (broken.wrong, right.wrong) == (wrong, None)
    assert len(document["workload"]["send"]) <= 6
    assert document["topology"]["nodes"] <= 8


@pytest.mark.parametrize(("name", "seed"), SEEDS.items())
def test_a_seed_finds_the_mistake(name: str, seed: int) -> None:
    assert any(trial.wrong for _, trial in experiments(BROKEN[name], Origin(seed)))


def test_a_mistake_is_searched_for_without_the_scenes_that_show_it() -> None:
    others = others_scenes("broken-trusting")
    assert "daisy-never-heard" not in others
    assert 20 < len(others) < len(scenes())
    assert not any(
        trial.wrong
        for scene in others.values()
        if (
            trial := attempt(
                {**scene, "protocol": {**scene["protocol"], "name": "broken-trusting"}}
            )
        )
    )
    assert others_scenes("broken-impatient") == {}, "no daisy has no scenes"
