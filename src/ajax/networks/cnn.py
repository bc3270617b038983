"""Convolutions: from an image to features."""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp

from ajax.core.config import config, setting
from ajax.core.errors import ConfigError, SpaceError
from ajax.networks.layers import ACTIVATIONS, hidden_init


@config
class CNN:
    """Convolutional layers before a torso's dense ones; the defaults fit MinAtar (Young & Tian 2019, section 4).

    Atari frames: `CNN(channels=(32, 64, 64), kernels=(8, 4, 3), strides=(4, 2, 1))` (Mnih et al. 2015, Methods).
    """

    channels: tuple[int, ...] = setting(default=(16,), help="filters of each convolutional layer")
    kernels: tuple[int, ...] = setting(default=(3,), help="width and height of each layer's filters, pixels")
    strides: tuple[int, ...] = setting(default=(1,), help="pixels between two applications of a layer's filters")

    def check(self) -> None:
        """Every layer has its three numbers."""
        lengths = {len(self.channels), len(self.kernels), len(self.strides)}
        if len(lengths) > 1 or not self.channels or min(self.channels + self.kernels + self.strides) < 1:
            raise ConfigError(
                f"CNN(channels={self.channels!r}, kernels={self.kernels!r}, strides={self.strides!r}): give each layer"
                " one number of each kind, all at least 1."
            )

    def sides(self, height: int, width: int) -> list[tuple[int, int]]:
        """Height and width of an image before the first layer and after each."""
        found = [(height, width)]
        for kernel, stride in zip(self.kernels, self.strides, strict=True):
            found.append(((found[-1][0] - kernel) // stride + 1, (found[-1][1] - kernel) // stride + 1))
        return found


class Filters(nn.Module):
    """The layers that `cnn` describes, without padding, each followed by `activation`.

    Takes images (batch, height, width, channels), of numbers or of bytes, which are scaled to [0, 1]; returns
    (batch, features).

    Raises:
        SpaceError: the observation is no image, or too small a one.
    """

    cnn: CNN
    activation: str
    initializer: str

    @nn.compact
    def __call__(self, obs: jax.Array) -> jax.Array:
        self._check(obs.shape[1:])
        x = obs.astype(jnp.promote_types(obs.dtype, jnp.float32))
        if obs.dtype == jnp.uint8:
            x = x / 255.0
        for channels, kernel, stride in zip(self.cnn.channels, self.cnn.kernels, self.cnn.strides, strict=True):
            init = hidden_init(self.initializer)
            x = nn.Conv(channels, (kernel, kernel), (stride, stride), padding="VALID", kernel_init=init)(x)
            x = ACTIVATIONS[self.activation](x)
        return x.reshape(x.shape[0], -1)

    def _check(self, shape: tuple[int, ...]) -> None:
        if len(shape) != 3:
            raise SpaceError(
                f"Torso(cnn={self.cnn!r}): the environment's observations have shape {shape}, and convolutions need"
                " images of (height, width, channels). Leave cnn out, or wrap the environment."
            )
        sides = self.cnn.sides(*shape[:2])
        if min(sides[-1]) < 1:
            raise SpaceError(
                f"Torso(cnn={self.cnn!r}): images of {shape[0]} x {shape[1]} pixels are too small: before each layer"
                f" they measure {', '.join(f'{h} x {w}' for h, w in sides[:-1])}. Lower kernels or strides."
            )
