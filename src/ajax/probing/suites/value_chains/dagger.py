"""DAgger: what the expert does, also where only the learner's own actions lead, and of discrete actions."""

from __future__ import annotations

from ajax.probing import Case, Query, Spec
from ajax.probing.subjects import readings
from ajax.probing.suites.boxes import BOX
from ajax.probing.suites.experts import Listed
from ajax.probing.suites.presets import make
from ajax.probing.suites.readings import Calibrated
from ajax.probing.suites.taught import mean, taught_case

TEACHES = (0.3, -1.0, 2.0)
STATES = Spec.of(
    "three states in a box", lambda s, region: (3, 0.0, True), n_states=4, start=(0.4, 0.3, 0.3, 0.0), box=BOX
)
DISCRETE = (2, 0, 1)
CHOICES = Spec.of("three choices", lambda s, a: (3, 0.0, True), n_states=4, n_actions=3, start=(0.4, 0.3, 0.3, 0.0))


def choice(calibrated: Calibrated) -> Case:
    """The best of three actions in three states."""

    def query(s: int) -> Query:
        right = float(DISCRETE[s])
        wrong = {"actions shifted up by one": (right + 1) % 3, "actions shifted down by one": (right - 1) % 3}
        return Query(f"greedy(s{s})", right, wrong)

    subject = make("DAgger", expert=Listed(actions=(*map(float, DISCRETE), 0.0), discrete=True))
    read = readings(subject, CHOICES, lambda trained: trained.act(CHOICES.obs[:3]))
    title = "DAgger (discrete), three choices"
    return Case("p0a-DAgger-discrete", (query(0), query(1), query(2)), read, title=title, **calibrated._asdict())


CASES = (
    taught_case(
        "p0a-DAgger",
        "DAgger, three states in a box",
        STATES,
        Listed(actions=(*TEACHES, 0.0), discrete=False),
        TEACHES,
        {"labels of other states": mean(TEACHES)},
        Calibrated(4_000, (0.02,) * 3, "4000, the only budget tried; worst error of 64 seeds 0.000; cert 32/32"),
    ),
    choice(Calibrated(2_000, (0.02,) * 3, "2000, the only budget tried; worst error of 64 seeds 0.000; cert 32/32")),
)
