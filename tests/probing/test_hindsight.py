"""What a Spec's episodes say of an action: by hand on a small chain, and against sampled episodes."""

from __future__ import annotations

import numpy as np
import pytest

from ajax.probing import Spec
from ajax.probing.hindsight import MISTAKES, Hindsight, ask, conditional, episodes

# s0: action 0 pays 1 and ends the task; the others lead to s1, for 0 and for 1. There it ends, for 1 but by action 1.
CHAIN = Spec.of(
    "chain",
    lambda s, a: ((2, 1.0, True) if a == 0 else (1, a - 1.0, False)) if s == 0 else (2, float(a != 1), True),
    n_states=3,
    n_actions=3,
)
DICE = Spec.of(
    "dice",
    lambda s, a: [(0.3, 0, 1.0 * a, False), (0.5, 1, 2.0 - a, False), (0.2, 2, 1.0, s == 1)],
    n_states=3,
    n_actions=2,
    start=(0.5, 0.5, 0),
    limit=3,
)


def test_episodes_are_listed_with_their_probabilities_and_ends():
    found = list(episodes(DICE))
    assert sum(e.probability for e in found) == pytest.approx(1.0)
    assert all(len(e.steps) == 3 or e.end == "terminated" for e in found)
    assert {e.end for e in found} == {"terminated", "truncated"}


@pytest.mark.parametrize(
    ("state", "command", "right"),
    [
        (0, (1, 1), [1, 0, 0]),
        (0, (1, 2), [0, 2 / 3, 1 / 3]),  # 0 then 1, by two of three actions; 1 then 0, by one
        (0, (0, 2), [0, 1, 0]),
        (1, (1, 1), [0.5, 0, 0.5]),
        (1, (3, 1), None),
    ],
)
def test_the_chances_of_a_chain_are_those_worked_out_by_hand(state, command, right):
    found = conditional(CHAIN, state, command)
    assert found is right if right is None else np.allclose(found, right)


def test_a_segment_may_end_anywhere():
    # s0 pays 1 in one step by action 0, whose episodes have one segment, or by action 2, one of four of whose has it
    found = conditional(CHAIN, 0, (1, 1), Hindsight(trailing=False))
    np.testing.assert_allclose(found, [0.8, 0.0, 0.2])


@pytest.mark.parametrize(
    ("mistake", "state", "command", "wrong"),
    [
        ("return of the whole episode", 1, (1, 1), [1 / 3, 1 / 3, 1 / 3]),
        ("return without the first reward", 0, (1, 2), [0, 0.5, 0.5]),
        ("first reward for the return", 0, (1, 2), [0, 0, 1]),
        ("desired return not seen", 0, (1, 2), [0, 0.5, 0.5]),
        ("desired horizon not seen", 0, (1, 2), [2 / 3, 2 / 9, 1 / 9]),
        ("command not seen", 0, (1, 2), [0.5, 0.25, 0.25]),
        ("actions shifted up by one", 0, (1, 1), [0, 1, 0]),
        ("actions shifted down by one", 0, (1, 1), [0, 0, 1]),
        ("action of the step after", 0, (0, 2), [0, 1, 0]),
        ("action of the step after", 0, (2, 2), [0.5, 0, 0.5]),
    ],
)
def test_a_mistakes_chances_are_those_worked_out_by_hand(mistake, state, command, wrong):
    np.testing.assert_allclose(conditional(CHAIN, state, command, Hindsight(**MISTAKES[mistake])), wrong)


@pytest.mark.parametrize("trailing", [True, False])
@pytest.mark.parametrize("keeps", ["all", "terminated", "truncated"])
def test_the_chances_are_those_of_sampled_episodes(trailing, keeps):
    rng, env, counts = np.random.default_rng(0), DICE.gymnasium(), {}
    env.reset(seed=0)
    for _ in range(3_000):
        obs, _ = env.reset()
        steps, ended = [], False
        while not ended:
            action = int(rng.integers(2))
            after, reward, terminated, truncated, _ = env.step(action)
            steps.append((int(obs.argmax()), action, reward))
            obs, ended = after, terminated or truncated
        if keeps == "all" or (keeps == "terminated") == terminated:
            n = len(steps)
            for first, (state, action, _) in enumerate(steps):
                ends = [n] if trailing else range(first + 1, n + 1)
                for end in ends:
                    paid = round(sum(step[2] for step in steps[first:end]))
                    row = counts.setdefault((state, paid, end - first), np.zeros(2))
                    row[action] += 1 / n / len(ends)
    checked = 0
    for (state, paid, horizon), row in counts.items():
        if row.sum() > 40:
            found = conditional(DICE, state, (paid, horizon), Hindsight(trailing=trailing, keeps=keeps))
            np.testing.assert_allclose(found, row / row.sum(), atol=0.14)
            checked += 1
    assert checked >= 2


def test_a_query_has_the_answers_of_the_mistakes_that_show():
    query = ask("P", CHAIN, 0, (1, 1), lambda p: p[0])
    assert query.right == 1.0 and query.wrong["command not seen"] == pytest.approx(0.5)
    assert "return of the whole episode" not in query.wrong, "it leaves the first step's command alone"


def test_what_nothing_says_is_not_asked():
    with pytest.raises(RuntimeError, match=r"no segment from s1 has the command \(3, 1\)"):
        ask("P", CHAIN, 1, (3, 1), lambda p: p[0])


def test_endless_episodes_are_refused():
    endless = Spec.of("endless", lambda s, a: (0, 1.0, False), n_states=1, n_actions=1)
    with pytest.raises(RuntimeError, match="more than 64 steps"):
        list(episodes(endless))


def test_joined_episodes_go_on_until_the_task_ends():
    # from s0, action 0 ends the task for 1; action 1 leads to s1, where the time limit strikes after a step that pays 2
    spec = Spec.of(
        "ends", lambda s, a: (1 if s == 0 and a else 2, 1.0 + s, s == 0 and a == 0), n_states=3, n_actions=2, limit=2
    )
    joined = Hindsight(**MISTAKES["episodes go on beyond a time limit"])
    np.testing.assert_allclose(conditional(spec, 0, (1, 1), joined), [1, 0])
    assert conditional(spec, 0, (3, 2), joined) is None, "a time limit ends no episode"
    np.testing.assert_allclose(conditional(spec, 0, (4, 3), joined), [0, 1])
    np.testing.assert_allclose(conditional(spec, 1, (3, 2), joined), [0.5, 0.5])
