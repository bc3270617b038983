import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ajax.networks.product import product


@pytest.mark.parametrize("batched", [False, True], ids=["one", "an ensemble"])
def test_the_product_and_its_gradients_are_those_of_a_matrix_product(batched):
    keys = jax.random.split(jax.random.key(0), 3)
    x, w, g = (jax.random.normal(k, shape) for k, shape in zip(keys, [(5, 3), (3, 4), (5, 4)], strict=True))
    ours, theirs = product, jnp.matmul
    if batched:
        w, g = jnp.stack([w, 2 * w]), jnp.stack([g, -g])
        ours, theirs = jax.vmap(ours, (None, 0)), jax.vmap(theirs, (None, 0))
    value, pull = jax.vjp(ours, x, w)
    expected, pull_expected = jax.vjp(theirs, x, w)
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    for mine, other in zip(pull(g), pull_expected(g), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-5)
