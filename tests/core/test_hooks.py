"""Extensions: folded in order, each with a key of its own, and refused where they can't work."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ajax.agents.dqn import DQN
from ajax.agents.ppo import PPO
from ajax.agents.td3 import TD3
from ajax.core.config import config, setting
from ajax.core.errors import CapabilityError
from ajax.core.hooks import PHASES, Extension, Hooks, check_extensions
from ajax.core.records import Batch, Clock, Inputs, Spec
from ajax.core.spaces import Box, Discrete


@config
class Affine(Extension):
    """target -> scale * target + shift, and terms that show what they saw."""

    scale: float = setting(default=1.0, help="factor")
    shift: float = setting(default=0.0, help="offset")

    def on_target(self, target, view):
        return self.scale * target + self.shift

    def critic_loss(self, view):
        return self.scale * view.target.sum()


@config
class AffineRows(Affine):
    """The same of a sample's rewards."""

    def sample(self, batch, view):
        return batch.replace(reward=self.scale * batch.reward + self.shift)


@config
class Counter(Extension):
    """Counts updates, and remembers its key's bits."""

    def init(self, agent, spec, key):
        return jnp.int32(0), jnp.uint32(0)

    def post_update(self, view):
        return view.own[0] + 1, jax.random.bits(view.key)


@config
class Bonus(Extension):
    """Needs a policy."""

    needs = frozenset({"pi"})

    def actor_loss(self, view):
        return jnp.float32(2.0) if view.net is not None else jnp.float32(-1.0)


ZERO = jnp.zeros(2)
BATCH = Batch(Inputs(ZERO[:, None]), ZERO, ZERO, ZERO, ZERO, Inputs(ZERO[:, None]))
SPEC = Spec(Box(0.0, 1.0, (1,)), Discrete(2))
CLOCK = Clock(jnp.float32(0), jnp.int32(0), jnp.float32(1))


def hooks(*extensions: Extension, own: tuple | None = None) -> Hooks:
    own = own if own is not None else tuple(e.init(DQN(), SPEC, jax.random.key(0)) for e in extensions)
    return Hooks(DQN(), extensions, own, CLOCK, jax.random.key(7))


def test_targets_fold_in_order():
    double, add = Affine(scale=2.0), Affine(shift=3.0)
    target = jnp.array([1.0, 5.0])
    np.testing.assert_array_equal(hooks(double, add).on_target(target, None, BATCH), [5.0, 13.0])
    np.testing.assert_array_equal(hooks(add, double).on_target(target, None, BATCH), [8.0, 16.0])


def test_batches_fold_in_order():
    double, add = AffineRows(scale=2.0), AffineRows(shift=3.0)
    b = BATCH.replace(reward=jnp.array([1.0, 5.0]))
    np.testing.assert_array_equal(hooks(double, add).sample(None, b).reward, [5.0, 13.0])
    np.testing.assert_array_equal(hooks(add, double).sample(None, b).reward, [8.0, 16.0])


def test_no_gradient_flows_through_a_target():
    slope = jax.grad(lambda x: hooks(Affine(scale=2.0)).on_target(x, None, BATCH).sum())(jnp.ones(2))
    np.testing.assert_array_equal(slope, [0.0, 0.0])
    np.testing.assert_array_equal(jax.grad(lambda x: hooks().on_target(x, None, BATCH).sum())(jnp.ones(2)), 0.0)


def test_losses_add_up_and_see_the_target():
    both = hooks(Affine(scale=2.0), Affine(scale=1.0))
    assert float(both.critic_loss(None, None, BATCH, jnp.array([1.0, 5.0]))) == 18.0
    assert float(hooks(Bonus(), Bonus()).actor_loss("net", None, BATCH)) == 4.0


def test_an_empty_stack_adds_nothing():
    assert hooks().critic_loss(None, None, BATCH, ZERO) == 0.0 and hooks().actor_loss(None, None, BATCH) == 0.0
    assert hooks().post_update(None, BATCH) == ()
    assert hooks(Counter()).critic_loss(None, None, BATCH, ZERO) == 0.0


def test_state_is_kept_a_place_each():
    own = hooks(Counter(), Affine(), Counter(), own=((jnp.int32(0), 0), (), (jnp.int32(5), 0))).post_update(None, BATCH)
    assert int(own[0][0]) == 1 and own[1] == () and int(own[2][0]) == 6


def test_every_extension_and_update_has_a_key_of_its_own():
    first, second = (int(bits) for _, bits in hooks(Counter(), Counter()).post_update(None, BATCH))
    stack = (Counter(), Counter())
    later = Hooks(DQN(), stack, ((0, 0), (0, 0)), CLOCK, jax.random.key(8)).post_update(None, BATCH)
    assert len({first, second, *(int(bits) for _, bits in later)}) == 4


def test_phases_are_those_that_are_overridden():
    assert Affine().phases() == ("on_target", "critic_loss") and Counter().phases() == ("post_update",)
    assert Extension().phases() == () and set(Affine().phases()) <= set(PHASES)


def test_a_phase_that_the_agent_does_not_fold_is_refused():
    check_extensions(TD3(), (Bonus(), Affine()))
    with pytest.raises(CapabilityError, match="Bonus works in actor_loss, which DQN does not fold"):
        check_extensions(DQN(), (Affine(), Bonus()))


def test_a_missing_capability_is_named():
    @config
    class NeedsQ(Extension):
        """Needs Q."""

        needs = frozenset({"q"})

    class Mine(DQN):
        pass

    check_extensions(DQN(), (NeedsQ(),))
    check_extensions(Mine(), (NeedsQ(),))  # what is inherited counts
    with pytest.raises(CapabilityError, match="NeedsQ needs q, which PPO has not"):
        check_extensions(PPO(), (NeedsQ(),))


def test_the_base_extension_has_no_losses():
    for phase in ("critic_loss", "actor_loss"):
        with pytest.raises(CapabilityError, match=f"Extension has no {phase}"):
            getattr(Extension(), phase)(None)
