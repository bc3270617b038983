"""Convolutions: the formula, the scale of bytes, and what is refused."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ajax.core.errors import ConfigError, SpaceError
from ajax.core.records import Inputs, Net
from ajax.core.spaces import Box, Discrete
from ajax.networks import heads
from ajax.networks.cnn import CNN, Filters
from ajax.networks.encoder import Encoder
from ajax.networks.torsos import Torso
from tests.agents.build import KEY

IMAGES = np.random.default_rng(0).integers(0, 256, (2, 5, 6, 3), dtype=np.uint8)
TWO = CNN(channels=(4, 2), kernels=(3, 2), strides=(2, 1))


def convolved(x: np.ndarray, kernel: np.ndarray, bias: np.ndarray, stride: int) -> np.ndarray:
    """A convolution without padding, written as the sum that it is."""
    side, channels = kernel.shape[0], kernel.shape[-1]
    height, width = ((n - side) // stride + 1 for n in x.shape[1:3])
    out = np.zeros((len(x), height, width, channels))
    for i in range(height):
        for j in range(width):
            patch = x[:, i * stride : i * stride + side, j * stride : j * stride + side]
            out[:, i, j] = np.einsum("bhwc,hwcd->bd", patch, kernel) + bias
    return out


def test_the_layers_are_the_formula():
    module = Filters(TWO, "tanh", "lecun")
    params = module.init(KEY, IMAGES)["params"]
    expected = IMAGES / 255.0
    for layer, stride in (("Conv_0", 2), ("Conv_1", 1)):
        p = jax.tree.map(np.asarray, params[layer])
        expected = np.tanh(convolved(expected, p["kernel"], p["bias"] + 0.0, stride))
    np.testing.assert_allclose(module.apply({"params": params}, IMAGES), expected.reshape(2, -1), rtol=1e-4, atol=1e-5)
    assert TWO.sides(5, 6) == [(5, 6), (2, 2), (1, 1)]


def test_bytes_are_scaled_and_numbers_are_not():
    module = Filters(CNN(), "relu", "lecun")
    params = module.init(KEY, IMAGES)["params"]
    bytes_, numbers = (module.apply({"params": params}, x) for x in (IMAGES, jnp.asarray(IMAGES, jnp.float32) / 255.0))
    np.testing.assert_allclose(bytes_, numbers, rtol=1e-4, atol=1e-6)
    flags = IMAGES > 127
    np.testing.assert_array_equal(
        module.apply({"params": params}, flags), module.apply({"params": params}, flags.astype(np.float32))
    )


@pytest.mark.parametrize("initializer", ["lecun", "orthogonal"])
def test_the_torso_says_how_filters_start(initializer):
    torso = Torso(cnn=CNN(channels=(4,), kernels=(5,), strides=(1,)), initializer=initializer)
    kernel = np.asarray(Encoder(torso).init(KEY, Inputs(IMAGES))["params"]["Filters_0"]["Conv_0"]["kernel"])
    flat = kernel.reshape(-1, 4)
    if initializer == "orthogonal":
        np.testing.assert_allclose(flat.T @ flat, 2.0 * np.eye(4), atol=1e-5)
    else:
        assert 0.9 * (3 / 75) ** 0.5 < np.abs(flat).max() <= (3 / 75) ** 0.5


def test_without_convolutions_the_encoder_is_the_identity():
    variables = Encoder(Torso()).init(KEY, Inputs(IMAGES))
    assert variables == {} and Encoder(Torso()).apply(variables, Inputs(IMAGES)) is IMAGES


TORSO = Torso(widths=(8,), cnn=TWO)
HEADS = {
    "QValues": (heads.QValues(2, TORSO), ()),
    "dueling": (heads.QValues(2, TORSO, dueling=True), ()),
    "QEnsemble": (heads.QEnsemble(TORSO), (jnp.zeros((2, 1)),)),
    "QValuesEnsemble": (heads.QValuesEnsemble(2, TORSO), ()),
    "Value": (heads.Value(TORSO), ()),
    "CategoricalPolicy": (heads.CategoricalPolicy(2, TORSO), ()),
    "GaussianPolicy": (heads.GaussianPolicy(1, TORSO), ()),
    "SquashedPolicy": (heads.SquashedPolicy(1, TORSO), ()),
    "DeterministicPolicy": (heads.DeterministicPolicy(1, TORSO), ()),
}


@pytest.mark.parametrize("name", HEADS)
def test_every_head_looks_through_the_filters(name):
    module, rest = HEADS[name]
    net = Net(module.init(KEY, Inputs(IMAGES), *rest)["params"], (), module)
    kernels = [path for path, _ in jax.tree_util.tree_flatten_with_path(net.params)[0] if "Conv" in str(path)]
    assert len(kernels) == 4, "two layers, each with a kernel and a bias"

    def total(params):
        return sum(jnp.square(leaf).sum() for leaf in jax.tree.leaves(net.at(params)(Inputs(IMAGES), *rest)))

    gradient = jax.grad(total)(net.params)
    moved = [path for path, g in jax.tree_util.tree_flatten_with_path(gradient)[0] if np.abs(g).sum() > 0]
    assert set(kernels) <= set(moved)


@pytest.mark.parametrize(
    "fields", [{"channels": (8, 8)}, {"kernels": (0,)}, {"channels": (), "kernels": (), "strides": ()}]
)
def test_layers_without_their_numbers_are_refused(fields):
    with pytest.raises(ConfigError, match="give each layer one number of each kind, all at least 1"):
        CNN(**fields)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((4,), r"have shape \(4,\), and convolutions need images of \(height, width, channels\)"),
        ((8, 8), r"have shape \(8, 8\), and convolutions need images"),
        ((8, 3, 1), "images of 8 x 3 pixels are too small: before each layer they measure 8 x 3, 3 x 1"),
    ],
)
def test_what_is_no_image_is_refused(shape, message):
    from ajax.agents.dqn import DQN
    from ajax.core.records import Spec

    spec = Spec(Box(0.0, 1.0, shape), Discrete(2))
    with pytest.raises(SpaceError, match=message):
        DQN(torso=TORSO).init(spec, KEY)
