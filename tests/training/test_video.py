"""A run on a Gymnasium environment can be watched."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from PIL import Image

from ajax.core.errors import CapabilityError
from ajax.training.video import save_video
from tests.training.tiny import DISCRETE, TINY_DQN, train


class Drawn(gymnasium.Env):
    """Six steps, each with a picture as bright as its time."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012 (Gymnasium's own form)
    observation_space = spaces.Box(0, 6, (1,))
    action_space = spaces.Discrete(2)

    def __init__(self, render_mode=None):
        self.render_mode, self.t = render_mode, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.t += 1
        return np.full(1, self.t, np.float32), 1.0, self.t == 6, False, {}

    def render(self):
        return np.full((8, 12, 3), 40 * self.t, np.uint8)


def test_a_video_shows_one_whole_episode(tmp_path):
    gymnasium.register("tests/Drawn-v0", Drawn)
    try:
        result = train(TINY_DQN, "tests/Drawn-v0", 16)
        path = save_video(result, tmp_path / "episode.gif")
    finally:
        del gymnasium.registry["tests/Drawn-v0"]
    with Image.open(path) as gif:
        assert (gif.size, gif.n_frames) == ((12, 8), 6)


def test_an_environment_without_pictures_is_refused(tmp_path):
    with pytest.raises(CapabilityError, match="IdentityEnv draws no pictures: a video needs an environment that Gymn"):
        save_video(train(TINY_DQN, DISCRETE, 16), tmp_path / "episode.gif")
