"""A picture of what a trained run does: one greedy episode of a Gymnasium environment as a GIF."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from ajax.core.errors import CapabilityError
from ajax.core.keys import seed_key, stream
from ajax.core.spaces import to_box
from ajax.environments.gymnasium import GymnasiumEnv
from ajax.logging.videos import save_gif
from ajax.training.evaluate import greedy, start_of
from ajax.training.host import HostLanes

if TYPE_CHECKING:
    from ajax.training.result import Result


def save_video(result: Result, path: str | Path, *, lane: int = 0, seed: int = 0, fps: float = 30.0) -> Path:
    """Save one greedy episode of a lane as a GIF; returns its path.

    Args:
        result: of training on a Gymnasium environment.
        path: where to.
        lane: which run.
        seed: of the episode.
        fps: frames per second.

    Raises:
        CapabilityError: the environment is not Gymnasium's, or draws no pictures.
        OSError: the file can't be written.
    """
    import gymnasium

    plan, lanes = result.session.plan, result.session.lanes
    if not isinstance(lanes, HostLanes) or not isinstance(lanes.env.source, str):
        raise CapabilityError(
            f"{plan.env_name} draws no pictures: a video needs an environment that Gymnasium makes by name, such as"
            " gymnasium:CartPole-v1."
        )
    name = lanes.env.source
    options = plan.episode_length, plan.action_repeat
    try:
        drawing = GymnasiumEnv(lambda: gymnasium.make(name, render_mode="rgb_array"), *options)
        vector = drawing.vector(1, seed)
        obs, frames, ended = vector.reset(), [vector.render()], False
    except gymnasium.error.DependencyNotInstalled as error:
        raise CapabilityError(f"{name} draws no pictures here: {error}") from error
    agent, task, run = plan.agents[lane], lanes.task, result.run(lane)
    policy, kept = greedy(agent, task, run), start_of(agent, task, run, 1)
    earned = np.zeros(1, np.float32)
    while not ended and len(frames) <= plan.limit:
        elapsed = len(frames) - 1
        key = jax.random.fold_in(stream(seed_key(seed), "act"), elapsed)
        _, executed, kept = policy(key, jnp.asarray(obs), kept, jnp.full(1, elapsed, jnp.float32), jnp.asarray(earned))
        out = vector.step(np.asarray(to_box(task.spec.action, executed)))
        earned += out.reward
        obs, ended = out.obs, bool(out.terminated[0] | out.truncated[0])
        if not ended:  # the next episode's first picture is there by then
            frames.append(vector.render())
    vector.close()
    return save_gif(np.stack(frames), path, fps=fps)
