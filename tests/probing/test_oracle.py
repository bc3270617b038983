"""The oracle against closed forms, linear programming and long simulations that share no code with it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.special import logsumexp

from ajax.core.errors import UnknownName
from ajax.probing.mistakes import MISTAKES, Problem, answers
from ajax.probing.oracle import Estimator, collect, solve, uniform_policy
from ajax.probing.spec import Spec

AB = Spec.of("AB", lambda s, a: (s, float(s), False), n_states=2, n_actions=1, start=[0.5, 0.5], limit=1)
CHAIN = Spec.of(
    "two-step chain",
    lambda s, a: (1, 0.0, False) if s == 0 else (2, (0.0, 0.5, 1.0)[a], True),
    n_states=3,
    n_actions=3,
)


def loop(limit: int | None = None) -> Spec:
    return Spec.of("loop", lambda s, a: (0, 1.0, False), n_states=1, n_actions=1, limit=limit)


def random_spec(seed: int, ends: bool = True, **options) -> Spec:
    rng = np.random.default_rng(seed)

    def transition(s, a):
        outcomes = [(rng.random(), int(rng.integers(4)), rng.normal(), ends and rng.random() < 0.2) for _ in range(3)]
        total = sum(o[0] for o in outcomes)
        return [(p / total, *rest) for p, *rest in outcomes]

    return Spec.of("random", transition, n_states=4, n_actions=3, start=[0.25] * 4, **options)


def random_policy(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet([1.0, 1.0, 1.0], 4)


def simulate(spec: Spec, policy: np.ndarray, steps: int, seed: int = 0) -> list[tuple]:
    """Rows (state, action, reward, next state, terminated, truncated, first state of the next episode or None)."""
    env, rng, rows = spec.gymnasium(), np.random.default_rng(seed), []
    where = {tuple(o): s for s, o in enumerate(spec.obs)}
    state = where[tuple(env.reset(seed=seed)[0])]
    for _ in range(steps):
        action = int(rng.choice(len(policy[state]), p=policy[state]))
        obs, reward, terminated, truncated, _ = env.step(action)
        after = where[tuple(obs)]
        first = where[tuple(env.reset()[0])] if terminated or truncated else None
        rows.append((state, action, reward, after, terminated, truncated, first))
        state = after if first is None else first
    return rows


def fit(rows, n_states: int, target, sweeps: int = 60) -> np.ndarray:
    """V (S,) by repeated averaging of `target(row index, v)` over the rows of each state."""
    v, states = np.zeros(n_states), np.array([row[0] for row in rows])
    counts = np.bincount(states, minlength=n_states)
    for _ in range(sweeps):
        v = np.bincount(states, [target(i, v) for i in range(len(rows))], n_states) / counts
    return v


@pytest.mark.parametrize(
    ("mistake", "expected"),
    [
        (None, (0.0, 10.0)),
        ("time limit taken as a termination", (0.0, 1.0)),
        ("bootstrap from the reset observation", (4.5, 5.5)),
        ("reset step learned from", (2.045454545, 2.954545454)),
    ],
)
def test_two_absorbing_states_cut_after_a_step(mistake, expected):
    problem = Problem(AB, Estimator(gamma=0.9))
    changed = problem if mistake is None else MISTAKES[mistake].change(problem)
    np.testing.assert_allclose(changed.solve().v, expected, atol=1e-8)


@pytest.mark.parametrize(("limit", "wrong"), [(2, 1 / 0.55), (5, 1 / 0.28), (10, 1 / 0.19)])
def test_a_loop_names_its_time_limit(limit, wrong):
    found = answers(Problem(loop(limit), Estimator(gamma=0.9)), lambda s: s.v[0], ["time limit taken as a termination"])
    assert found == pytest.approx({"right": 10.0, "time limit taken as a termination": wrong})


def test_two_step_chain():
    found = answers(Problem(CHAIN, Estimator(gamma=0.8)), lambda s: s.q[0, 1])
    expected = {
        "right": 0.8,
        "mean instead of max in the bootstrap": 0.4,
        "min instead of max in the bootstrap": 0.0,
        "discount squared": 0.64,
        "1 - discount for the discount": 0.2,
        "no discount": 1.0,
        "no bootstrap": 0.0,
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    shifted = answers(Problem(CHAIN, Estimator(gamma=0.8)), lambda s: s.q[1, 2], ["actions shifted up by one"])
    assert shifted["actions shifted up by one"] == pytest.approx(0.5)
    best = answers(Problem(CHAIN, Estimator(gamma=0.8)), lambda s: s.greedy[1], ["greedy action read one index up"])
    assert best == {"right": 2.0, "greedy action read one index up": 0.0}


def test_soft_values_of_a_bandit():
    bandit = Spec.of("bandit", lambda s, a: (1, (0.0, 1.0)[a], True), n_states=2, n_actions=2)
    found = solve(bandit, Estimator(gamma=0.9, backup="soft", temperature=0.5))
    assert found.v[0] == pytest.approx(0.5 * logsumexp([0, 2]))
    np.testing.assert_allclose(found.policy[0], np.exp([0, 2]) / np.exp([0, 2]).sum())
    bare = solve(bandit, Estimator(gamma=0.9, backup="soft", temperature=0.5, entropy=0.0))
    assert bare.v[0] == pytest.approx(np.exp(2) / (1 + np.exp(2)))


@pytest.mark.parametrize("seed", range(3))
def test_optimal_values_are_the_linear_programs(seed):
    spec, gamma = random_spec(seed), 0.8
    # minimise sum V subject to V(s) >= r(s, a) + gamma sum_s' p V(s'), terminations cut
    to = np.eye(4)[spec.next_state]
    onwards = np.einsum("sak,sakt->sat", spec.probability * ~spec.terminated, to)
    reward = (spec.probability * spec.reward).sum(-1)
    rows = gamma * onwards - np.eye(4)[:, None]
    program = linprog(np.ones(4), rows.reshape(-1, 4), -reward.ravel(), bounds=(None, None))
    found = solve(spec, Estimator(gamma=gamma))
    np.testing.assert_allclose(found.v, program.x, atol=1e-7)
    np.testing.assert_allclose(found.q.max(-1), found.v, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_optimal_gain_is_the_linear_programs(seed):
    spec = random_spec(seed, ends=False)
    to = np.einsum("sak,sakt->sat", spec.probability, np.eye(4)[spec.next_state])
    reward = (spec.probability * spec.reward).sum(-1)
    # maximise the mean reward over stationary shares x(s, a)
    flow = (np.eye(4)[:, None] - to).reshape(12, 4).T
    program = linprog(-reward.ravel(), A_eq=np.vstack([flow, np.ones(12)]), b_eq=np.r_[np.zeros(4), 1.0])
    found = solve(spec, Estimator(average=True))
    assert found.gain == pytest.approx(-program.fun, abs=1e-7)
    best = reward - found.gain + to @ found.v  # the average-reward optimality equation
    np.testing.assert_allclose(best.max(-1), found.v, atol=1e-8)
    assert collect(spec, found.policy).visits @ found.v == pytest.approx(0.0, abs=1e-8)


def test_differential_values_of_two_states():
    # 0 pays 1 and moves on, 1 pays 0 and moves back: gain 1/2, and being in 0 is worth 1/2 more
    spec = Spec.of("blink", lambda s, a: (1 - s, float(s == 0), False), n_states=2, n_actions=1)
    found = solve(spec, Estimator(average=True))
    assert found.gain == pytest.approx(0.5)
    np.testing.assert_allclose(found.v, [0.25, -0.25], atol=1e-12)
    assert np.isinf(answers(Problem(spec, Estimator(average=True)), lambda s: s.v[0])["gain not subtracted"])


def test_without_the_gain_values_diverge_and_the_best_policy_stays():
    # staying pays 1, going on 0: the policy that stays has the best gain, whether it is subtracted or not
    spec = Spec.of("stay", lambda s, a: (s if a == 0 else 1 - s, float(a == 0), False), n_states=2, n_actions=2)
    found = solve(spec, Estimator(average=True, subtract_gain=False))
    assert np.all(np.isinf(found.v)) and found.gain == pytest.approx(1.0)
    assert list(found.greedy) == [0, 0]


def test_a_bootstrap_from_what_was_acted_on_never_looks_ahead():
    # s0 pays 0 and leads to s1, which pays 1 and ends: Q(s0) = 0.9 Q(s0)
    spec = Spec.of("two steps", lambda s, a: (min(s + 1, 2), float(s), s == 1), n_states=3, n_actions=2)
    found = answers(Problem(spec, Estimator(gamma=0.9)), lambda s: s.q[0, 0])
    assert found["right"] == pytest.approx(0.9)
    assert found["next observation is the one acted on"] == pytest.approx(0.0)
    # paid 0.2 a step, Q(s0) = 0.2 / (1 - 0.9)
    spec = Spec.of("paid", lambda s, a: (min(s + 1, 2), 0.2, s == 1), n_states=3, n_actions=2)
    assert solve(spec, Estimator(gamma=0.9, moved=False)).q[0, 0] == pytest.approx(2.0)


def test_data_counts_a_long_simulation():
    spec, policy = random_spec(5, limit=3, stagger=2), random_policy(5)
    data, rows = collect(spec, policy), simulate(spec, policy, 30_000)
    for state in range(4):
        own = [row for row in rows if row[0] == state]
        assert len(own) / len(rows) == pytest.approx(data.visits[state], abs=0.015)
        assert np.mean([row[5] for row in own]) == pytest.approx(data.timed_out[state], abs=0.03)
        ends = sum(row[6] is not None and row[3] == state for row in rows)
        assert ends / len(rows) == pytest.approx(data.arrivals[state], abs=0.015)


def one_step(rows, gamma, boot):
    return lambda i, v: rows[i][2] + gamma * (1 - rows[i][4]) * boot(rows[i], v)


@pytest.mark.parametrize(
    ("changes", "boot"),
    [
        ({}, lambda row, v: v[row[3]]),
        ({"cut": "ended"}, lambda row, v: v[row[3]] * (1 - row[5])),
        ({"bootstrap": "reset"}, lambda row, v: v[row[6]] if row[5] else v[row[3]]),
        ({"bootstrap": "current"}, lambda row, v: v[row[0]] if row[5] else v[row[3]]),
        ({"seen_as": (1, 2, 3, 0)}, lambda row, v: v[(row[3] + 1) % 4]),
        ({"boot": 0.5}, lambda row, v: 0.5 * v[row[3]]),
    ],
    ids=["right", "limit ends", "reset", "current", "taken for another", "half"],
)
def test_policy_values_are_what_a_simulation_learns(changes, boot):
    spec, policy = random_spec(2, limit=2), random_policy(2)
    rows = simulate(spec, policy, 12_000)
    found = solve(spec, Estimator(gamma=0.7, backup="policy", policy=policy, behaviour=policy, **changes))
    np.testing.assert_allclose(found.v, fit(rows, 4, one_step(rows, 0.7, boot)), atol=0.08)


def multi_step(rows, gamma, n, lam, v):
    """The n-step or lambda returns of all rows, along the rows as they were collected; `v` (S,) bootstraps."""

    def target(i):
        total, scale, weight = 0.0, 1.0, 1.0
        for j in range(i, len(rows)):
            _, _, reward, after, terminated, truncated, _ = rows[j]
            total += weight * scale * reward
            scale *= gamma
            if terminated:
                break
            if truncated or (n and j - i + 1 == n) or weight < 1e-3 or j + 1 == len(rows):
                total += weight * scale * v[after]
                break
            if not n:
                total += weight * (1 - lam) * scale * v[after]
                weight *= lam
        return total

    return np.array([target(i) for i in range(len(rows))])


@pytest.mark.parametrize("changes", [{"n": 3}, {"lam": 0.6}], ids=["n-step", "lambda"])
def test_off_policy_returns_are_what_a_simulation_learns(changes):
    spec, behaviour = random_spec(3, limit=5), random_policy(4)
    rows = simulate(spec, behaviour, 6_000)
    found = solve(spec, Estimator(gamma=0.6, backup="max", behaviour=behaviour, **changes))
    q, actions = np.zeros((4, 3)), np.array([row[1] for row in rows])
    states = np.array([row[0] for row in rows])
    for _ in range(25):
        values = multi_step(rows, 0.6, changes.get("n", 0), changes.get("lam", 0.0), q.max(-1))
        q = np.array([[values[(states == s) & (actions == a)].mean() for a in range(3)] for s in range(4)])
    np.testing.assert_allclose(found.q, q, atol=0.2)
    assert np.abs(found.q - q).mean() < 0.06
    naive = solve(spec, Estimator(gamma=0.6, backup="max"))
    assert np.abs(naive.q - q).mean() > 0.15  # the one-step answer is told apart


def test_gae_forwards_is_what_a_simulation_learns():
    spec = random_spec(7, limit=4)
    policy, gamma, lam = random_policy(7), 0.7, 0.9
    rows = simulate(spec, policy, 12_000)
    states = np.array([row[0] for row in rows])
    v = np.zeros(4)
    for _ in range(150):
        trace, advantages = 0.0, np.zeros(len(rows))
        for i, (state, _, reward, after, terminated, truncated, _) in enumerate(rows):
            delta = reward + gamma * (1 - terminated) * v[after] - v[state]
            trace = advantages[i] = delta + gamma * lam * (not (terminated or truncated)) * trace
        v = v + 0.5 * np.bincount(states, advantages, 4) / np.bincount(states, minlength=4)
    estimator = Estimator(gamma=gamma, lam=lam, backup="policy", policy=policy, behaviour=policy)
    found = answers(Problem(spec, estimator), lambda s: s.v[0], ["GAE forwards in time"])
    assert abs(found["GAE forwards in time"] - found["right"]) > 0.1
    assert found["GAE forwards in time"] == pytest.approx(v[0], abs=0.1)


def test_n_steps_discount_the_bootstrap_by_their_power():
    spec = loop()
    estimator = Estimator(gamma=0.5, n=3)
    assert solve(spec, estimator).v[0] == pytest.approx(2.0)
    found = answers(Problem(spec, estimator), lambda s: s.v[0], ["n-step bootstrap discounted once"])
    assert found["n-step bootstrap discounted once"] == pytest.approx(1.75 / 0.5)


def test_divergence_is_infinite():
    found = answers(Problem(loop(), Estimator(gamma=0.8)), lambda s: s.v[0])
    assert found["no discount"] == np.inf


def test_states_without_steps_have_no_value():
    assert np.isnan(solve(CHAIN, Estimator(gamma=0.8)).v[2])


def test_mistakes_that_cannot_show_are_refused():
    problem = Problem(CHAIN, Estimator(gamma=0.8))
    with pytest.raises(RuntimeError, match="'reward missing' leaves this reading at 0;"):
        answers(problem, lambda s: s.q[1, 0], ["reward missing"])
    with pytest.raises(UnknownName, match="Did you mean 'discount squared'"):
        answers(problem, lambda s: s.q[1, 0], ["discount sqared"])
    with pytest.raises(RuntimeError, match="not both"):
        solve(CHAIN, Estimator(gamma=0.8, n=2, lam=0.5))


def test_uniform_policy_is_the_default_behaviour():
    spec = random_spec(3, limit=3)
    explicit = Estimator(gamma=0.6, lam=0.5, behaviour=uniform_policy(spec))
    np.testing.assert_allclose(solve(spec, explicit).q, solve(spec, Estimator(gamma=0.6, lam=0.5)).q)
