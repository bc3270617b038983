"""The trajectory oracle against numbers worked out by hand (rlax-style) and laws between its functions."""

from __future__ import annotations

import numpy as np
import pytest

from ajax.probing.trajectory import Trajectory, gae, lambda_returns, n_step_returns

# three rewards of 1, V = 2 everywhere, the episode ends after the second step; gamma 0.9, lambda 0.95
GAE3 = Trajectory([1, 1, 1], [2, 2, 2], [2, 2, 2], [0, 1, 0], [0, 0, 0])
# max Q along a chain is 0, 1, 2, 3, 4; no rewards, no discount
LAM4 = Trajectory([0] * 4, [0, 1, 2, 3], [1, 2, 3, 4], [0] * 4, [0] * 4)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("right", [-0.055, -1.0, 0.8]),
        ("episode ends read one step early", [-1.0, 1.484, 0.8]),
        ("episode ends read one step late", [0.752975, -0.055, -1.0]),
        ("episode ends ignored", [2.06882, 1.484, 0.8]),
        ("trace not cut at episode ends", [0.52982, -0.316, 0.8]),
        ("termination taken as a time limit", [1.484, 0.8, 0.8]),
        ("lambda ignored (0)", [0.8, -1.0, 0.8]),
        ("GAE forwards in time", [0.8, -1.0, -0.055]),
    ],
)
def test_gae(name, expected):
    np.testing.assert_allclose(gae(GAE3, 0.9, 0.95)[name], expected, atol=1e-9)


def test_gae_tells_a_time_limit_from_a_termination():
    cut = Trajectory([1, 1, 1], [2, 2, 2], [2, 2, 2], [0, 0, 0], [0, 1, 0])
    found = gae(cut, 0.9, 0.95)
    np.testing.assert_allclose(found["right"], [1.484, 0.8, 0.8], atol=1e-9)
    np.testing.assert_allclose(found["time limit taken as a termination"], [-0.055, -1.0, 0.8], atol=1e-9)


@pytest.mark.parametrize(
    ("lam", "name", "expected"),
    [
        (0.0, "right", [1, 2, 3, 4]),
        (0.65, "right", [2.347125, 3.0725, 3.65, 4]),
        (0.0, "last bootstrap used for two rows", [1, 2, 4, 4]),
        (0.65, "last bootstrap used for two rows", [2.495, 3.3, 4, 4]),
        (0.0, "bootstrap from the observation acted on", [0, 1, 2, 3]),
        (0.65, "lambda ignored (0)", [1, 2, 3, 4]),
        (0.65, "lambda ignored (1)", [4, 4, 4, 4]),
    ],
)
def test_lambda_returns(lam, name, expected):
    np.testing.assert_allclose(lambda_returns(LAM4, 1.0, lam)[name], expected, atol=1e-9)


def test_n_step_returns():
    ones = Trajectory([1, 1, 1], [10] * 3, [10] * 3, [0] * 3, [0] * 3)
    found = n_step_returns(ones, 0.5, 3)
    np.testing.assert_allclose(found["right"], [3.0, 4.0, 6.0])  # 1 + 1/2 + 1/4 + 10/8, and shorter at the end
    np.testing.assert_allclose(found["n-step bootstrap discounted once"], [6.75, 6.5, 6.0])
    np.testing.assert_allclose(found["one step instead of n"], [6.0, 6.0, 6.0])


def test_gae_plus_values_is_the_lambda_return():
    rng = np.random.default_rng(0)
    values = rng.normal(size=8)
    ended = rng.random(8) < 0.3
    terminated = ended & (rng.random(8) < 0.5)
    t = Trajectory(rng.normal(size=8), values, rng.normal(size=8), terminated, ended & ~terminated)
    # the two agree where the next row's value is the next value: the forward view needs V(s_t+1) = values[t + 1]
    t.next_values[:-1][~ended[:-1]] = values[1:][~ended[:-1]]
    np.testing.assert_allclose(gae(t, 0.9, 0.7)["right"] + values, lambda_returns(t, 0.9, 0.7)["right"], atol=1e-9)
    np.testing.assert_allclose(n_step_returns(t, 0.9, 8)["right"], lambda_returns(t, 0.9, 1.0)["right"], atol=1e-9)
