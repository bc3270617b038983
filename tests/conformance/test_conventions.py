"""The registered differences from the originals are differences indeed: without its entry, a check fails, and there."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.conformance import (
    conventions,
    test_avg_original,
    test_crossq_adityab,
    test_dqn_sb3,
    test_iql_ikostrikov,
    test_ppo_sb3,
    test_pqn_purejaxql,
    test_redq_watchernyu,
    test_sac_sb3,
    test_td3_sfujim,
    test_td3bc_sfujim,
)
from tests.conformance.kit import Check, cast
from tests.conformance.submaps import Leaf, ensemble, misfits, mlp, to_flat, to_params

CHECKS = (
    test_avg_original,
    test_crossq_adityab,
    test_dqn_sb3,
    test_iql_ikostrikov,
    test_ppo_sb3,
    test_pqn_purejaxql,
    test_redq_watchernyu,
    test_sac_sb3,
    test_td3_sfujim,
    test_td3bc_sfujim,
)


def without(check: Check, name: str) -> Check:
    """The check with one convention of the original taken out."""
    left = tuple(patch for patch in check.conventions if patch.__name__ != name)
    assert len(left) == len(check.conventions) - 1
    return dataclasses.replace(check, conventions=left)


def test_every_convention_has_its_reason():
    used = {patch.__name__ for module in CHECKS for patch in module.check().conventions}
    used |= {type(extension).__name__ for module in CHECKS for extension in module.check().extensions}
    used |= {module.check().expected.__name__ for module in CHECKS} - {"<lambda>"}
    assert used == set(conventions.REASONS)
    assert all(hasattr(conventions, name) for name in used)


def test_torch_clip():
    assert without(test_ppo_sb3.check(), "torch_clip").misfits(1)
    # DQN's first recorded update is within the limit, its second is clipped
    found = without(test_dqn_sb3.check(), "torch_clip").misfits(2)
    assert found and all(line.startswith("after2/") for line in found)


def test_unbiased_std():
    assert without(test_ppo_sb3.check(), "unbiased_std").misfits(1)


def test_tanh_eps():
    # the difference is 1e-6 in a density: float64 sees it in every gradient of actor and critics
    assert without(test_sac_sb3.check(), "tanh_eps").misfits(1)
    assert without(test_redq_watchernyu.check(), "tanh_eps").misfits(1)


def test_linear_log_alpha():
    """The temperature's gradient, read off the first moment, is the record's times alpha; nothing else differs."""
    check = test_sac_sb3.check()
    found = without(check, "linear_log_alpha").misfits(1)
    own = ("log_alpha", "opt_alpha/m/log_alpha", "opt_alpha/v/log_alpha")
    assert {line.split(":")[0] for line in found} == {f"after1/{name}" for name in own}
    before, after = check.record.under("before"), check.record.under("f64/after1")
    theirs = (after["opt_alpha/m/log_alpha"] - 0.9 * before["opt_alpha/m/log_alpha"].astype(np.float64)) / 0.1
    with conventions.tanh_eps(), jax.enable_x64(True):
        ours = without(check, "linear_log_alpha").stages(1, check.agent, np.float64)["after1"]
    gradient = (ours["opt_alpha/m/log_alpha"] - 0.9 * before["opt_alpha/m/log_alpha"].astype(np.float64)) / 0.1
    np.testing.assert_allclose(gradient, np.exp(before["log_alpha"].astype(np.float64)) * theirs, rtol=1e-9)


def test_linear_log_alpha_of_redq():
    """Its second recorded update is the first to move the temperature, and the next ones read it."""
    found = without(test_redq_watchernyu.check(), "linear_log_alpha").misfits(2)
    assert found and all("log_alpha" in line for line in found)


def test_early_actor():
    """The critics' step is the same; the policy's, in every second update, climbs other critics."""
    found = without(test_redq_watchernyu.check(), "early_actor").misfits(2)
    assert {line.split("/")[1] for line in found} == {"actor", "opt_actor"}


def test_held_alpha():
    """A rounding of alpha: float64 sees it in every gradient."""
    found = without(test_redq_watchernyu.check(), "held_alpha").misfits(1)
    assert found and without(test_redq_watchernyu.check(), "held_alpha").misfits(1, x64=False) == []


def test_late_refresh():
    """Ours holds the new target already after the first update; theirs before the second step, where it is used."""
    check = test_dqn_sb3.check()
    found = dataclasses.replace(check, expected=lambda stage, after, states: after).misfits(2)
    assert found and all(line.startswith("after1/target_q/") for line in found)


def test_early_bootstrap():
    """Of a rollout's targets, the last two rows' and what leads there differ; the learning phase does not."""
    check = test_pqn_purejaxql.check()
    found = without(check, "early_bootstrap").misfits(1)
    assert found and any(line.startswith("gradstep1/") for line in found)
    theirs = check.record.at("f64/mid", 0)["target"]
    with jax.enable_x64(True):
        state = cast(check.begin(), np.float64)
        ours = check.agent.prepare(state, check.rollout(0, np.float64)).extras["target"]
    assert not np.isclose(ours[-2], theirs[-2], rtol=1e-6).all()
    np.testing.assert_allclose(ours[-1], theirs[-1], rtol=1e-10)


def test_per_gradient_step():
    # the first gradient step of a rollout has the same step size by either count, and so has the target
    found = without(test_pqn_purejaxql.check(), "per_gradient_step").misfits(1)
    assert found and not any(line.startswith("gradstep1/") for line in found)


def test_log_variance():
    assert without(test_avg_original.check(), "log_variance").misfits(1)


def test_exact_bias_correction():
    check = without(test_avg_original.check(), "exact_bias_correction")
    assert check.misfits() == [] and check.misfits(x64=False)


def test_behavior_cloning_units():
    check = dataclasses.replace(test_td3bc_sfujim.check(), extensions=())
    found = check.misfits(2)
    assert found and all(line.startswith("after2/") for line in found)  # the first update leaves the actor alone
    assert not any("critic1/layer" in line and "target" not in line for line in found)


# The kit itself


def test_a_map_reads_both_ways():
    leaves = [
        *mlp("MLP_0", "a/layer0", ("a/mean", "a/log_std")),
        *ensemble("Vmap", ("c1", "c2"), 1),
        Leaf("value", ("log_alpha",), "scalar"),
    ]
    rng = np.random.default_rng(0)
    shapes = {
        **{"a/layer0/kernel": (3, 4), "a/layer0/bias": (4,), "a/mean/kernel": (4, 2), "a/mean/bias": (2,)},
        **{"a/log_std/kernel": (4, 2), "a/log_std/bias": (2,), "c1/layer0/kernel": (3, 1), "c1/layer0/bias": (1,)},
        **{"c2/layer0/kernel": (3, 1), "c2/layer0/bias": (1,), "log_alpha": (1,)},
    }
    flat = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    params = to_params(flat, leaves, "")
    assert params["MLP_0"]["Dense_1"]["kernel"].shape == (4, 4) and params["Vmap"]["Dense_0"]["bias"].shape == (2, 1)
    back = to_flat(params, leaves, "")
    assert back.keys() == flat.keys()
    for name, array in flat.items():
        np.testing.assert_array_equal(back[name], array, err_msg=name)


@pytest.mark.parametrize(
    ("ours", "fits"),
    [(1.001, True), (1.001 + 0.9e-12, True), (1.001 + 1.1e-12, False), (1.0, False), (1.002, False)],
)
def test_an_error_is_measured_against_the_change(ours, fits):
    before, after = {"w": np.array([1.0])}, {"w": np.array([1.001])}
    assert (misfits({"w": np.array([ours])}, before, after) == []) is fits


def test_what_does_not_change_must_not_change_at_all():
    before = {"w": np.array([1.0])}
    assert misfits({"w": np.array([1.0])}, before, before) == []
    assert misfits({"w": np.array([1.0 + 1e-15])}, before, before)
    assert misfits({"w": np.array([np.nan])}, before, before)
    assert misfits({"w": np.array([1.0 + 1e-7], np.float32)}, before, before, before)


def test_a_draw_the_record_does_not_hold_is_refused():
    check = dataclasses.replace(test_td3_sfujim.check(), draws={})
    with pytest.raises(AssertionError, match="a draw that the record does not hold: 'target_noise'"):
        check.misfits(1)


def test_a_draw_that_is_not_used_is_refused():
    check = dataclasses.replace(test_td3_sfujim.check(), draws={"target_noise": "target_noise", "more": "target_noise"})
    with pytest.raises(AssertionError, match="not used"):
        check.misfits(1)


def test_float32_is_restored():
    assert jnp.zeros(1).dtype == jnp.float32
