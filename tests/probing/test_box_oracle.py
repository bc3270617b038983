"""Answers for actions in a box against closed forms and simulations that share no code with them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import norm

from ajax.core.spaces import Box
from ajax.probing.box_oracle import Actor, solve_box
from ajax.probing.mistakes import Problem, answers
from ajax.probing.oracle import Estimator, refer
from ajax.probing.spec import Spec, parabola

BOX = Box.of([-0.5], [2.0])
BANDIT = Spec.of("bandit", lambda s, r: (1, 0.0, True), n_states=2, box=BOX, quadratic=lambda s: parabola(1.5))
CHAIN = Spec.of(
    "chain",
    lambda s, r: (1, 0.0, False) if s == 0 else (2, 0.0, True),
    n_states=3,
    box=BOX,
    quadratic=lambda s: parabola(1.5, 1.0) if s == 1 else (0, 0, 0),
)
GREEDY = Actor(stochastic=False)


def test_a_deterministic_actor_finds_the_target():
    found = solve_box(CHAIN, Estimator(gamma=0.8), GREEDY)
    assert found.action[1, 0] == pytest.approx(1.5)
    assert found.v[1] == pytest.approx(1.0)
    assert found.q(0, 0.3) == pytest.approx(0.8)
    assert found.q(1, 0.5) == pytest.approx(0.0)


def test_a_reference_becomes_the_gain_and_holds_the_values():
    ends = Spec.of("every step ends", lambda s, r: (0, 3.0, True), n_states=1, box=BOX)
    found = solve_box(ends, Estimator(average=True, cut="reset", reference=0.5), GREEDY)
    assert (found.gain, found.v[0], found.q(0, 0.0)) == pytest.approx((3.0, 6.0, 6.0))


def test_values_under_a_reference_are_where_iterating_ends():
    weight, offset, following = np.array([[0.0, 1.0], [0.7, 0.3]]), np.array([1.0, -2.0]), np.array([0.4, 0.6])
    v, gain = refer(weight, offset, np.ones(2), following, 0.5)
    found, xi = np.zeros(2), 0.0
    for _ in range(5_000):
        found, xi = found + 0.05 * (offset - xi + weight @ found - found), xi + 0.05 * (0.5 * following @ found - xi)
    np.testing.assert_allclose(np.r_[v, gain], np.r_[found, xi], atol=1e-9)
    with pytest.raises(RuntimeError, match=r"do not settle under the reference 0\.0"):
        refer(weight, offset, np.ones(2), following, 0.0)


def test_a_target_beyond_the_box_is_met_at_its_edge():
    spec = Spec.of("edge", lambda s, r: (1, 0.0, True), n_states=2, box=BOX, quadratic=lambda s: parabola(3.0))
    assert solve_box(spec, Estimator(gamma=0.8), GREEDY).action[0, 0] == pytest.approx(2.0)


def test_mappings_of_the_box():
    found = answers(Problem(BANDIT, Estimator(gamma=0.8), GREEDY), lambda s: s.action[0, 0])
    assert found["actions read in agent units"] == pytest.approx(0.6)  # of [-0.5, 2], 1.5 is 0.6
    assert found["actions not mapped onto the box"] == pytest.approx(2.0)  # the agent's own 1.5 is out of reach


def test_smoothed_targets_lose_the_noises_variance():
    actor = Actor(stochastic=False, noise=0.1)
    # 0.8 agent units are 1 in the box: the noise is 0.125 wide there, and clipping at the edge is 4 sigmas off
    found = answers(Problem(CHAIN, Estimator(gamma=0.8), actor), lambda s: s.q(0, 0.0), ["no target noise"])
    assert found["right"] == pytest.approx(0.8 * (1 - 0.125**2), abs=1e-4)
    assert found["no target noise"] == pytest.approx(0.8)


def test_clipped_noise():
    actor = Actor(stochastic=False, noise=0.4, noise_clip=0.1)
    found = solve_box(CHAIN, Estimator(gamma=0.8), actor)
    noise = np.clip(0.4 * np.random.default_rng(0).normal(size=400_000), -0.1, 0.1) * 1.25
    assert found.q(0, 0.0) == pytest.approx(0.8 * (1 - np.mean(noise**2)), abs=1e-4)
    assert "target noise not clipped" in answers(Problem(CHAIN, Estimator(gamma=0.8), actor), lambda s: s.q(0, 0.0))


def squashed_entropy(mean: float, std: float) -> float:
    """By adaptive quadrature over the action itself."""

    def term(x):
        density = norm.pdf(np.arctanh(x), mean, std) / (1 - x**2)
        return -density * np.log(density) if density > 0 else 0.0

    return quad(term, -1 + 1e-12, 1 - 1e-12, limit=400)[0]


def test_a_gaussian_actor_maximises_value_and_entropy():
    temperature = 0.2
    found = solve_box(BANDIT, Estimator(gamma=0.8, temperature=temperature), Actor())
    mean, std = found.mean[0, 0], found.std[0, 0]

    def objective(mean, std):
        reward = quad(lambda u: -((0.75 + 1.25 * np.tanh(u) - 1.5) ** 2) * norm.pdf(u, mean, std), mean - 9, mean + 9)[
            0
        ]
        return reward + temperature * squashed_entropy(mean, std)

    best = objective(mean, std)
    assert found.v[0] == pytest.approx(best, abs=1e-5)
    assert found.entropy[0] == pytest.approx(squashed_entropy(mean, std), abs=1e-5)
    for step in ((0.02, 0), (-0.02, 0), (0, 0.02), (0, -0.02)):
        assert objective(mean + step[0], std + step[1]) < best
    # no policy does better than the unrestricted soft optimum
    x = np.linspace(-1, 1, 20001)
    bound = temperature * (logsumexp(-((0.75 + 1.25 * x - 1.5) ** 2) / temperature) + np.log(x[1] - x[0]))
    assert best < bound < best + 0.02


def test_a_tuned_temperature_meets_its_entropy():
    found = solve_box(BANDIT, Estimator(gamma=0.8, temperature=1.0), Actor(target_entropy=-1.0))
    assert found.entropy[0] == pytest.approx(-1.0, abs=1e-4)
    assert 0 < found.temperature < 0.1


def test_each_entropic_mistake_has_an_answer_of_its_own():
    problem = Problem(CHAIN, Estimator(gamma=0.8, temperature=0.3), Actor())
    found = answers(problem, lambda s: s.q(0, 0.0))
    h = problem.solve().entropy[1]
    assert found["no entropy in the target"] == pytest.approx(found["right"] - 0.8 * 0.3 * h)
    assert found["entropy with the wrong sign in the target"] == pytest.approx(found["right"] - 2 * 0.8 * 0.3 * h)
    assert found["no tanh Jacobian in the target"] > found["right"] + 0.05
    assert found["no tanh Jacobian in the policy"] < found["right"] - 1.0
    values = found["no entropy in the target"]  # the sum of two critics doubles these, and not the entropy
    assert found["sum of two critics for their minimum"] == pytest.approx(found["right"] + values)


def test_regions_of_the_box_choose_transitions():
    # above 1 the episode pays 1 and ends, below it goes round for nothing
    spec = Spec.of(
        "gate", lambda s, r: (1, 1.0, True) if r else (0, 0.0, False), n_states=2, box=BOX, edges=[1.0], limit=9
    )
    found = solve_box(spec, Estimator(gamma=0.5), GREEDY)
    assert found.v[0] == pytest.approx(1.0)
    assert found.q(0, 0.0) == pytest.approx(0.5)
    assert found.q(0, 1.2) == pytest.approx(1.0)


def test_differential_values_in_a_box():
    spec = Spec.of("round", lambda s, r: (1 - s, float(s), False), n_states=2, box=BOX, quadratic=lambda s: parabola(1))
    found = solve_box(spec, Estimator(average=True), GREEDY)
    assert found.gain == pytest.approx(0.5)
    np.testing.assert_allclose(found.v, [-0.25, 0.25], atol=1e-6)


def test_two_dimensions_have_a_target_each():
    box = Box.of([-0.5, -2.0], [2.0, 0.5])
    spec = Spec.of(
        "plane", lambda s, r: (1, 0.0, True), n_states=2, box=box, quadratic=lambda s: [parabola(1.2), parabola(-1.0)]
    )
    found = solve_box(spec, Estimator(gamma=0.8), GREEDY)
    np.testing.assert_allclose(found.action[0], [1.2, -1.0])
    assert found.q(0, [1.2, 0.0]) == pytest.approx(-1.0)


def test_scaled_rewards_move_the_actor_too():
    plain = solve_box(BANDIT, Estimator(gamma=0.8, temperature=0.2), Actor())
    scaled = solve_box(BANDIT, Estimator(gamma=0.8, temperature=1.0, reward_scale=5.0), Actor())
    np.testing.assert_allclose(plain.action[0], scaled.action[0], atol=1e-4)
    assert scaled.v[0] == pytest.approx(5 * plain.v[0], abs=1e-4)
