"""A GIF holds every frame, in order, for the time asked."""

import numpy as np
import pytest
from PIL import Image

from ajax.logging.videos import save_gif

COLORS = np.array([[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 255]], np.uint8)
FRAMES = np.broadcast_to(COLORS[:, None, None], (4, 20, 30, 3))


def test_frames_size_and_speed(tmp_path):
    path = save_gif(FRAMES, tmp_path / "episode.gif", fps=25)
    with Image.open(path) as picture:
        assert (picture.n_frames, picture.size, picture.info["loop"]) == (4, (30, 20), 0)
        for i, color in enumerate(COLORS):
            picture.seek(i)
            assert picture.info["duration"] == 40
            np.testing.assert_array_equal(np.asarray(picture.convert("RGB"))[10, 15], color)


@pytest.mark.parametrize("frames", [FRAMES[0], FRAMES / 255, FRAMES[..., 0], FRAMES[:0]])
def test_what_is_no_video_is_refused(tmp_path, frames):
    with pytest.raises(ValueError, match=r"frames must be \(time, height, width, 3\) uint8, not \("):
        save_gif(frames, tmp_path / "episode.gif")
    assert not list(tmp_path.iterdir())
