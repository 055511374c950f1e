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
    "broken-hospitable": ("order", "daisy-newcomer"),
    "broken-undecided": ("unrepaired", "daisy-back-before-it-left"),
    "broken-stubborn": ("unrepaired", "daisy-leaves-before-it-is-back"),
    "broken-idle": ("loss", "daisy-server-leaves"),
    "broken-empty-handed": ("gap", "daisy-merged-in-transit"),
    "broken-releasing": ("gap", "daisy-released-between-groups"),
    "broken-trusting": ("loss", "daisy-never-heard"),
    "broken-reassured": ("unrepaired", "daisy-waits-to-send"),
    "broken-dismissive": ("loss", "daisy-admitted-elsewhere"),
    "broken-misguiding": ("loss", "daisy-comes-back-alone"),
    "broken-copied": ("gap", "daisy-k-copies"),
    "broken-servers-vector": ("loss", "daisy-early-vectors"),
    "broken-overtaking": ("order", "daisy-overtaken-by-an-answer"),
    "broken-deaf": ("loss", "daisy-split-while-it-stood-still"),
    "broken-premature": ("loss", "daisy-back-below-another-server"),
    "broken-forsaking": ("gap", "daisy-merged-without-the-absent"),
    "broken-unforgiving": ("gap", "daisy-old-wish"),
    "broken-discarding": ("gap", "daisy-started-again"),
    "broken-halting": ("loss", "daisy-waits-in-vain"),
    "broken-absentminded": ("order", "daisy-comes-back-without-a-past"),
    "broken-generous": ("order", "daisy-kept-for-others"),
    "broken-presuming": ("loss", "daisy-left-and-back-unnoticed"),
    "broken-eager": ("unrepaired", "daisy-behind-for-ever"),
    "broken-relying": ("gap", "daisy-split-twice"),
    "broken-deposed": ("gap", "daisy-last-to-have-it"),
    "broken-awaiting": ("loss", "daisy-waits-for-a-view-given-up"),
    "broken-estranged": ("gap", "daisy-split-off-while-away"),
    "broken-guessing": ("gap", "daisy-merged-with-a-part-after-a-while"),
    "broken-lingering": ("error", "daisy-asked-after-it-left"),
    "broken-prompt": ("gap", "daisy-cut-off-as-it-came-back"),
    "broken-careless": ("gap", "daisy-kept-for-one-that-is-back-above"),
    "broken-nameless": ("loss", "daisy-heard-of-below"),
    "broken-short-sighted": ("gap", "daisy-back-among-those-who-were-cut-off"),
    "broken-welcoming": ("gap", "daisy-returns-to-a-new-server-after-a-while"),
    "broken-literal": ("loss", "daisy-inside-another-view-after-a-while"),
    "broken-homing": ("order", "daisy-back-by-a-shorter-way"),
    "broken-nostalgic": ("error", "daisy-back-in-a-group-that-was-split-off"),
    "broken-abdicating": ("loss", "daisy-agreed-on-for-others"),
    "broken-assuming": ("loss", "daisy-admitted-to-a-weak-view"),
    "broken-confusing": ("gap", "daisy-sent-to-and-fro"),
    "broken-bequeathing": ("unrepaired", "daisy-all-leave-but-who-joins"),
    "broken-resigning": ("gap", "daisy-split-off-and-not-said"),
    "broken-lenient": ("order", "daisy-away-below-a-server-that-returns"),
    "broken-mistaking": ("gap", "daisy-restarted-and-last-to-have-it"),
    "broken-sweeping": ("gap", "daisy-known-beside-a-newcomer"),
    "broken-unaware": ("loss", "daisy-left-unheard-and-back"),
    "broken-ignoring": ("loss", "daisy-moved-out-of-reach"),
    "broken-conflating": ("order", "daisy-back-before-two-levels-knew"),
    "broken-lavish": ("order", "daisy-moved-after-it-was-sent"),
    "broken-undiscerning": ("order", "daisy-new-below-and-not-above"),
    "broken-indifferent": ("order", "daisy-brought-from-above-for-others"),
    "broken-recanting": ("loss", "daisy-answered-another"),
    "broken-oblivious": ("order", "daisy-kept-until-it-was-over"),
    "broken-departing": ("loss", "daisy-left-before-the-others-were-back"),
}

SEEDS = {"broken-undecided": 15, "broken-trusting": 6}


def test_every_daisy_has_an_example() -> None:
    assert set(EXAMPLES) == set(DAISIES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_mistake_shows_and_the_right_daisy_passes(name: str) -> None:
    wrong, scene = EXAMPLES[name]
    document = scenes()[scene]
    broken = attempt({**document, "protocol": {**document["protocol"], "name": name}})
    right = attempt(document)
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
