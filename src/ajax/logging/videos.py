"""Pictures of an episode as one animated GIF."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ajax.logging.files import replacing


def save_gif(frames: np.ndarray, path: str | Path, *, fps: float = 30.0) -> Path:
    """Save an episode's frames as a GIF that repeats forever.

    Args:
        frames: (time, height, width, 3), uint8, such as the `rgb_array` renderings of a Gymnasium environment.
        path: where to.
        fps: frames per second; GIFs count in hundredths of a second, so that at most 50 come out as asked.

    Returns:
        The path.

    Raises:
        ValueError: the frames have another shape or dtype, or there are none.
        OSError: the file can't be written.
    """
    from PIL import Image

    frames, path = np.asarray(frames), Path(path)
    if frames.ndim != 4 or frames.shape[-1] != 3 or frames.dtype != np.uint8 or len(frames) == 0:
        raise ValueError(f"frames must be (time, height, width, 3) uint8, not {frames.shape} {frames.dtype}.")
    first, *rest = [Image.fromarray(frame) for frame in frames]
    with replacing(path) as file:
        first.save(file, format="GIF", save_all=True, append_images=rest, duration=round(1000 / fps), loop=0)
    return path
