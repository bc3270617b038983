"""APG: the gradient through the environment is exact, it stops where episodes end, and the policy climbs it."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import struct

from ajax import APG, GRU, Rollout
from ajax.core.errors import CapabilityError, EnvironmentFault, SpaceError
from ajax.core.keys import seed_key
from ajax.core.spaces import Box
from ajax.environments.base import Step
from ajax.environments.registry import make
from ajax.networks.torsos import Torso
from ajax.probing.linear_env import LinearEnv
from ajax.training import chunk, collect, slopes
from ajax.training.normalise import Normalize
from ajax.training.run import Task
from tests.agents.build import KEY, LINEAR, SMALL, clock, first, gradient, random_batch, spec, step, with_table

BOX = Box.of([-1.5], [3.0])
SCALE, SHIFT = 2.25, 0.75  # agent units to the box's
ENV = LinearEnv(start=-1.0, drift=1.2, effort=0.5, n_steps=3, terminates=True, action_space=BOX)
AGENT = APG(
    gamma=0.9,
    learning_rate=1e-3,
    max_grad_norm=None,
    torso=LINEAR,
    rollout=Rollout(n_envs=2, n_steps=3, n_epochs=1, n_minibatches=1),
)


def started(agent: Any, env: Any, n_envs: int = 2) -> tuple[Any, Task]:
    """A run that begins."""
    task = Task(env, n_envs)
    return jax.jit(lambda agent: chunk.begin(agent, task, seed_key(0))[0])(agent), task


def sloped(agent: Any, env: Any, state: Any = None) -> Any:
    """The rows of the first rollout (time, n_envs, ...), with their slopes."""
    run, task = started(agent, env)
    run = run if state is None else run.replace(agent=state)
    return jax.jit(lambda agent, run: slopes.rollout(agent, task, run, KEY, clock())[1])(agent, run)


def cost(env: LinearEnv, xs: Any, actions: Any, gamma: float) -> Any:
    """The discounted cost of an episode in which these actions are taken, whatever the policy says."""
    total, x = 0.0, xs
    for t, a in enumerate(actions):
        x = env.drift * x + a
        total = total + gamma**t * (x**2 + env.effort * a**2)
    return total


def test_the_slopes_of_a_policy_that_sees_nothing_are_those_of_the_cost():
    """Without feedback the derivative is that of a polynomial in the actions."""
    s = first(AGENT, spec(8, 1))
    s = s.replace(actor=with_table(s.actor, jnp.zeros((8, 2)), 0.3))
    rows = sloped(AGENT, ENV, s)
    for env in range(2):
        executed = np.asarray(rows.action[:, env, 0], np.float64) * SCALE + SHIFT
        expected = -SCALE * np.array(jax.grad(lambda a: cost(ENV, -1.0, a, 0.9))(jnp.asarray(executed)))
        np.testing.assert_allclose(rows.extras["slope"][:, env, 0], expected, rtol=1e-5)


def test_the_slopes_of_linear_feedback_count_what_later_actions_make_of_a_nudge():
    """a_t = k x_t + m: a nudge of a_0 moves a_1 by k, and so on; the derivative is worked out by hand."""
    deterministic = dataclasses.replace(AGENT, stochastic=False)
    s = first(deterministic, spec(8, 1))
    k = -0.01  # small, so that tanh is nearly linear; its slope is put in
    s = s.replace(actor=with_table(s.actor, jnp.zeros((8, 2)).at[0, 0].set(k)))
    rows = sloped(deterministic, ENV, s)
    x = np.asarray(rows.now.obs[:, 0, 0], np.float64)
    after = np.asarray(rows.next.obs[:, 0, 0], np.float64)
    a = np.asarray(rows.action[:, 0, 0], np.float64) * SCALE + SHIFT
    feedback = SCALE * k * (1 - np.tanh(k * x) ** 2)  # da_t / dx_t
    value, expected = 0.0, np.zeros(3)  # value: derivative of the rest of the return in x
    for t in (2, 1, 0):
        beyond = -2 * after[t] + 0.9 * value  # in x_{t+1}
        in_action = beyond - 2 * ENV.effort * a[t]
        expected[t] = 0.9**t * SCALE * in_action
        value = ENV.drift * beyond + feedback[t] * in_action
    np.testing.assert_allclose(rows.extras["slope"][:, 0, 0], expected, rtol=1e-5)


@pytest.mark.parametrize("stochastic", [True, False])
@pytest.mark.parametrize("torso", [LINEAR, SMALL, dataclasses.replace(SMALL, memory=GRU(size=4, length=6))])
def test_an_update_follows_the_gradient_of_the_whole_rollout(torso, stochastic):
    """What the two parts make together is the derivative of the return in the parameters, taken at once."""
    rollout = dataclasses.replace(AGENT.rollout, n_steps=6)
    agent = dataclasses.replace(AGENT, torso=torso, stochastic=stochastic, rollout=rollout)
    run, task = started(agent, ENV)

    @jax.jit
    def both(agent: Any, run: Any) -> tuple[Any, Any]:
        def objective(params: Any) -> jax.Array:
            moved = run.replace(agent=run.agent.replace(actor=run.agent.actor.at(params)))
            _, rows, _ = slopes.collect.rollout(agent, task, moved, key, now)
            return -agent.objective(rows) / agent.rollout.size

        key, now = jax.random.fold_in(run.key, 0), clock()
        after, _, _ = chunk.LOOPS["on_policy"].tick(agent, task, run, key, now, True)
        return after.agent.actor, jax.grad(objective)(run.agent.actor.params)

    actor, direct = both(agent, run)
    largest = max(float(jnp.abs(x).max()) for x in jax.tree.leaves(direct))
    assert largest > 0.01
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=2e-5 * largest), gradient(actor), direct)


@pytest.mark.parametrize("terminates", [True, False])
def test_no_gradient_passes_an_episodes_end(terminates):
    """Of two episodes in a rollout, the first's slopes are what they are without the second, whichever way it ends."""
    env = dataclasses.replace(ENV, terminates=terminates)
    long = dataclasses.replace(AGENT, rollout=dataclasses.replace(AGENT.rollout, n_steps=6))
    both = sloped(long, env)
    ended = np.maximum(both.terminated, both.truncated)[:, 0]
    assert ended.tolist() == [0, 0, 1, 0, 0, 1] and bool(both.terminated.any()) == terminates
    for part in (slice(0, 3), slice(3, 6)):
        for lane in range(2):
            executed = both.action[part, lane, 0]

            def feedback(nudge: Any, part: Any = part, lane: int = lane) -> Any:
                """The episode's return with its noise, replayed by itself."""
                s, x, total = started(long, env)[0].agent, -1.0, 0.0
                for t in range(3):
                    seen = jnp.asarray(env.obs(x, t))[None]
                    pi = s.actor(both.now.replace(obs=seen))
                    a = pi.from_noise(both.extras["noise"][part][t, lane][None])[0][0, 0] + nudge[t]
                    a = SHIFT + SCALE * a
                    x = env.drift * x + a
                    total = total - 0.9**t * (x**2 + env.effort * a**2)
                return total

            expected = jax.grad(feedback)(jnp.zeros(3))
            np.testing.assert_allclose(both.extras["slope"][part, lane, 0], expected, rtol=1e-4, atol=1e-5)
            assert executed.shape == (3,)


def test_normalized_rewards_are_differentiated_as_they_are_learned_from():
    task = Task(ENV, 2, Normalize(rewards=True))

    @jax.jit
    def slope(agent: Any, spread: Any) -> Any:
        run, _ = chunk.begin(agent, task, seed_key(0))
        seen = run.statistics.reward.add(jnp.stack([-spread, spread]).reshape(2, 1))
        run = run.replace(statistics=run.statistics.replace(reward=seen))
        return slopes.rollout(agent, task, run, KEY, clock())[1].extras["slope"]

    one, four = (slope(AGENT, jnp.float32(spread)) for spread in (1.0, 4.0))
    np.testing.assert_allclose(one, 4.0 * four, rtol=1e-4)


def test_the_discount_starts_again_with_an_episode():
    b = random_batch(spec(3, 1), size=8)
    rollout = jax.tree.map(lambda x: x.reshape(4, 2, *x.shape[1:]), b)
    ends = jnp.zeros((4, 2)).at[1, 0].set(1.0)
    rollout = rollout.replace(reward=jnp.ones((4, 2)), terminated=ends, truncated=jnp.zeros((4, 2)))
    agent = APG(gamma=0.5)
    expected = (1 + 0.5 + 1 + 0.5) + (1 + 0.5 + 0.25 + 0.125)
    assert float(agent.objective(rollout)) == pytest.approx(expected)
    cut = rollout.replace(terminated=rollout.truncated, truncated=ends)
    assert float(agent.objective(cut)) == pytest.approx(expected)


def test_the_step_climbs_the_slopes_alone():
    agent = dataclasses.replace(AGENT, torso=SMALL)
    space = spec(3, 2)
    s, b = first(agent, space), random_batch(space)
    noise = jax.random.normal(KEY, (32, 2))
    slope = jax.random.normal(jax.random.key(4), (32, 2))
    b = b.replace(extras={"noise": noise, "slope": slope})
    after, metrics, _ = step(agent, s, b, clock(), KEY)

    def worth(params: Any) -> jax.Array:
        return -(slope * s.actor.at(params)(b.now).from_noise(noise)[0]).sum(-1).mean()

    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6),
        gradient(after.actor),
        jax.grad(worth)(s.actor.params),
    )
    assert float(metrics["reward"]) == pytest.approx(float(b.reward.mean()))
    assert float(metrics["slope"]) == pytest.approx(float(jnp.sqrt(jnp.square(slope).mean())), rel=1e-5)
    # the rewards of the batch are in its slopes
    other, _, _ = step(agent, s, b.replace(reward=b.reward + 7.0), clock(), KEY)
    jax.tree.map(np.testing.assert_array_equal, other.actor.params, after.actor.params)


def test_the_gradients_norm_is_limited():
    space = spec(3, 2)
    agent = dataclasses.replace(AGENT, torso=SMALL, max_grad_norm=0.01)
    b = random_batch(space).replace(extras={"noise": jnp.zeros((32, 2)), "slope": jnp.ones((32, 2))})
    after, _, _ = step(agent, first(agent, space), b, clock(), KEY)
    assert float(optax.tree.norm(gradient(after.actor))) == pytest.approx(0.01, rel=1e-4)


def test_acting_keeps_the_noise_that_made_the_action():
    s, x = first(AGENT, spec(3, 1)), random_batch(spec(3, 1)).now
    action, extras = AGENT.act(s, x, KEY, clock(), True)
    assert (AGENT.pi(s, x).from_noise(extras["noise"])[0] == action).all() and extras["noise"].std() > 0.5
    mode, nothing = AGENT.act(s, x, KEY, clock(), False)
    assert nothing == {}
    still, extras = dataclasses.replace(AGENT, stochastic=False).act(s, x, KEY, clock(), True)
    np.testing.assert_allclose(still, mode, rtol=1e-6)
    assert not extras["noise"].any()


def test_every_step_of_a_rollout_draws_its_own_noise():
    noise = np.ravel(sloped(AGENT, ENV).extras["noise"])
    assert len(noise) == 6 and len(np.unique(noise)) == 6


@struct.dataclass
class Still(LinearEnv):
    """Nothing in it has a derivative in the action."""

    def step(self, key: jax.Array, place: Any, action: jax.Array) -> tuple[Any, Step]:
        """Take a rounded action."""
        return super().step(key, place, jnp.round(action))


STEPS = {"steps": 6, "progress": False, "episodes": 0, "evaluations": 1}


def test_what_has_no_derivative_is_refused_before_training():
    with pytest.raises(SpaceError, match="APG needs continuous actions"):
        AGENT.train("CartPole-v1", **STEPS)
    with pytest.raises(CapabilityError, match="APG differentiates the environment, and a Gymnasium environment has no"):
        AGENT.train("gymnasium:Pendulum-v1", **STEPS)
    with pytest.raises(EnvironmentFault, match=r"Still: neither the observation nor the reward .* changes smoothly"):
        AGENT.train(Still(**vars(ENV)), **STEPS)
    with pytest.raises(CapabilityError, match="APG learns from what it collects itself"):
        AGENT.train(ENV, **STEPS, dataset=object())  # type: ignore[arg-type]


def test_gymnax_passes_its_transitions_gradients_on():
    rows = sloped(dataclasses.replace(AGENT, stochastic=False), make("Pendulum-v1"))
    # the first action's own cost is 0.001 a^2; what it makes of the angle costs far more
    own = 2 * 0.001 * 2.0 * np.abs(np.asarray(rows.action[0]) * 2.0)
    assert (np.abs(np.asarray(rows.extras["slope"][0])) > 2 * own).all()


def test_a_memory_is_learned_through():
    memory = dataclasses.replace(SMALL, memory=GRU(size=4, length=3))
    run, _ = started(dataclasses.replace(AGENT, torso=memory), ENV)
    assert set(run.carry) == {"policy_encoder"}


@pytest.mark.slow
def test_it_swings_the_pendulum_up():
    agent = APG(learning_rate=1e-3)
    result = agent.train("Pendulum-v1", 600_000, seeds=2, evaluations=2, episodes=16, progress=False)
    assert (result.returns[:, -1] > -450).all()


@pytest.mark.slow
def test_it_finds_the_best_linear_feedback():
    agent = APG(
        gamma=0.7,
        learning_rate=3e-3,
        stochastic=False,
        torso=Torso(widths=(32, 32), activation="tanh"),
        rollout=Rollout(n_envs=4, n_steps=3, n_epochs=1, n_minibatches=1),
    )
    env = dataclasses.replace(ENV, effort=1.0)
    result = agent.train(env, 24_000, evaluations=1, episodes=0, progress=False)
    gains, x = env.best([0.7, 0.7, 0.0]), env.start
    for t in range(3):
        action = float(result.act(np.asarray(env.obs(x, t))[None])[0, 0])
        assert action == pytest.approx(gains[t] * x, abs=0.03)
        x = env.drift * x + gains[t] * x


@pytest.mark.slow
def test_the_slopes_through_brax_are_its_rewards_derivative():
    """Along a random direction of all actions at once, against a central difference; the policy reacts."""
    pytest.importorskip("brax")
    agent = dataclasses.replace(AGENT, torso=SMALL, rollout=Rollout(n_envs=2, n_steps=4, n_epochs=1, n_minibatches=1))
    run, task = started(agent, make("brax:inverted_double_pendulum"))
    slope = jax.jit(lambda agent, run: slopes.rollout(agent, task, run, KEY, clock())[1].extras["slope"])(agent, run)

    @jax.jit
    def objective(nudge: jax.Array) -> jax.Array:
        return agent.objective(collect.rollout(agent, task, run, KEY, clock(), nudge)[1])

    direction = jax.random.normal(jax.random.key(7), slope.shape)
    change = (objective(0.01 * direction) - objective(-0.01 * direction)) / 0.02
    assert abs(float(change)) > 0.1
    np.testing.assert_allclose((slope * direction).sum(), change, rtol=0.02)
