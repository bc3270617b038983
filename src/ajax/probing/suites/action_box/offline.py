"""IQL's actions from recorded steps, where the reward's peak lies below, above and in the box."""

from __future__ import annotations

from ajax.probing import Case, Query
from ajax.probing.subjects import readings
from ajax.probing.suites.action_box.peaks import BANDIT
from ajax.probing.suites.offline import ACTIONS, drawn, expectile, mistaken, paid, recorded
from ajax.probing.suites.presets import make
from ajax.probing.suites.readings import Calibrated

EXPECTILE, BETA = 0.8, 2.0
APART = 0.15


def iql(calibrated: Calibrated) -> Case:
    """The policy's mean in the three states."""
    queries = []
    for s in range(3):
        values = paid(BANDIT, s, ACTIONS)
        v = expectile(values, EXPECTILE)
        right = drawn(values, v, BETA)
        wrong = {name: x for name, x in mistaken(values, v, BETA).items() if abs(x - right) >= APART}
        queries.append(Query(f"action(s{s})", right, wrong))
    subject = make("IQL", dataset=recorded, expectile=EXPECTILE, beta=BETA)
    found = readings(subject, BANDIT, lambda trained: trained.act(BANDIT.obs[:3])[..., 0])
    return Case("box-IQL", tuple(queries), found, title="IQL, recorded peaks in a box", **calibrated._asdict())


CASES = (
    iql(
        Calibrated(
            4_000, (0.07, 0.046, 0.072), "4000, the only budget tried; worst error of 64 seeds 0.036; cert 32/32"
        )
    ),
)
