"""A picture of what a trained run does: one greedy episode of a Gymnasium environment as a GIF."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ajax.core.errors import CapabilityError
from ajax.environments.gymnasium import GymnasiumEnv
from ajax.logging.videos import save_gif
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
    while not ended and len(frames) <= plan.limit:
        out = vector.step(result.act(obs, lane))
        obs, ended = out.obs, bool(out.terminated[0] | out.truncated[0])
        if not ended:  # the next episode's first picture is there by then
            frames.append(vector.render())
    vector.close()
    return save_gif(np.stack(frames), path, fps=fps)
