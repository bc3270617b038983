"""Checkpoints come back bit for bit; whatever else happens, an older one stays usable and one sentence says why."""

import errno
import os
import subprocess
import sys
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ajax.core.errors import CheckpointError
from ajax.logging import checkpoint, files
from ajax.logging.checkpoint import checkpoints, latest, load, save


class Net(NamedTuple):
    kernel: jax.Array
    bias: jax.Array


def run_tree(n_inputs: int = 17) -> dict:
    return {
        "agent": {"critic": Net(jnp.linspace(-1, 1, n_inputs * 4).reshape(n_inputs, 4), jnp.zeros(4, jnp.bfloat16))},
        "key": jax.random.key(3),
        "keys": jax.random.split(jax.random.key(1, impl="rbg"), 5),
        "raw_key": jax.random.PRNGKey(0),
        "frames": np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3),
        "done": jnp.array([True, False]),
        "odd": np.array([np.nan, -0.0, np.inf, 5e-324]),
        "transposed": np.arange(6.0).reshape(2, 3).T,
        "empty": jnp.zeros((0, 3)),
        "tick": 12,
        "horizon": 0.1,
        "nothing": None,
    }


def bits(tree) -> list:
    arrays = [jax.random.key_data(x) if checkpoint._is_key(x) else x for x in jax.tree.leaves(tree)]
    return [(np.asarray(x).dtype, np.shape(x), np.asarray(x).tobytes()) for x in arrays]


def test_every_leaf_comes_back_bit_for_bit_with_its_type(tmp_path):
    tree, meta = run_tree(), {"agent": "SAC", "seeds": [1, 2], "gamma": 0.99}
    path = save(tmp_path, tree, meta, step=50_000)
    assert path == tmp_path / "step_000000050000.ckpt"
    loaded, loaded_meta = load(tmp_path, like=tree)
    assert loaded_meta == meta
    assert jax.tree.structure(loaded) == jax.tree.structure(tree)
    assert bits(loaded) == bits(tree)
    for value, original in zip(jax.tree.leaves(loaded), jax.tree.leaves(tree), strict=True):
        assert isinstance(value, type(original))
    np.testing.assert_array_equal(jax.random.bits(loaded["keys"][2], (4,)), jax.random.bits(tree["keys"][2], (4,)))


def test_shapes_alone_will_do_as_the_expected_structure(tmp_path):
    tree = {"w": jnp.ones((2, 3)), "key": jax.random.key(9)}
    path = save(tmp_path, tree, {}, step=1)
    loaded, _ = load(path, like=jax.eval_shape(lambda: tree))
    assert bits(loaded) == bits(tree)


def test_without_a_structure_the_leaves_come_by_path(tmp_path):
    save(tmp_path, run_tree(), {}, step=1)
    flat, _ = load(tmp_path)
    assert flat["agent.critic.kernel"].shape == (17, 4)
    assert flat["agent.critic.bias"].dtype == jnp.bfloat16
    assert flat["tick"] == 12


def test_the_same_tree_gives_the_same_bytes(tmp_path):
    a, b = save(tmp_path / "a", run_tree(), {"x": 1}, step=1), save(tmp_path / "b", run_tree(), {"x": 1}, step=1)
    assert a.read_bytes() == b.read_bytes()


def test_the_last_two_are_kept_in_order_of_steps(tmp_path):
    for step in (999_999_999_999, 5, 1_000_000_000_000, 2_000_000_000_000):
        save(tmp_path, {"x": 1}, {}, step=step)
    assert [p.name for p in checkpoints(tmp_path)] == ["step_1000000000000.ckpt", "step_2000000000000.ckpt"]
    save(tmp_path, {"x": 1}, {}, step=7, keep=1)
    assert [p.name for p in checkpoints(tmp_path)] == ["step_000000000007.ckpt"]


@pytest.mark.parametrize(
    ("saved", "expected", "sentence"),
    [
        (run_tree(17), run_tree(11), "agent.critic.kernel is (17, 4) in the file, (11, 4) here"),
        ({"x": jnp.ones(2)}, {"x": jnp.ones(2, jnp.int32)}, "x is float32 in the file, int32 here"),
        ({"k": jax.random.key(0)}, {"k": jax.random.key(0, impl="rbg")}, "k is key<fry> in the file, key<rbg> here"),
        ({"a": {"x": 1, "y": 2}}, {"a": {"x": 1}}, "a.y is in the file, but not here"),
        ({"a": {"x": 1}}, {"a": {"x": 1, "y": 2}}, "a.y is here, but not in the file"),
    ],
)
def test_a_checkpoint_of_another_structure_names_the_leaf_and_the_run(tmp_path, saved, expected, sentence):
    save(tmp_path, saved, {"agent": "SAC", "env": "Pendulum-v1"}, step=1)
    with pytest.raises(CheckpointError) as caught:
        load(tmp_path, like=expected)
    assert str(caught.value) == f"{sentence}; the run trained SAC on Pendulum-v1."


def test_what_is_no_array_is_refused_by_path(tmp_path):
    with pytest.raises(CheckpointError, match=r"net\.name is str of dtype <U3; a checkpoint holds numbers"):
        save(tmp_path, {"net": {"name": "mlp"}}, {}, step=1)
    with pytest.raises(CheckpointError, match=r"two leaves of the tree have the path 'a\.b'"):
        save(tmp_path, {"a.b": 1, "a": {"b": 2}}, {}, step=1)


def test_a_missing_checkpoint_is_one_sentence(tmp_path):
    with pytest.raises(CheckpointError, match="there is no checkpoint in"):
        load(tmp_path)
    with pytest.raises(CheckpointError, match="there is no checkpoint in"):
        latest(tmp_path / "nowhere")


def test_cut_short_anywhere_it_is_refused_and_the_older_one_used(tmp_path):
    older = save(tmp_path, run_tree(), {"n": 1}, step=1)
    newer = save(tmp_path, run_tree(), {"n": 2}, step=2)
    whole = newer.read_bytes()
    for size in {0, 1, 7, 8, 9, 27, 28, 59, 60, 61, len(whole) - 1, *range(0, len(whole), 97)}:
        newer.write_bytes(whole[:size])
        with pytest.raises(CheckpointError, match=r"is cut short: .* bytes"):
            load(newer)
    with pytest.warns(UserWarning, match=r"step_000000000002.ckpt is cut short.*Going on from step_000000000001.ckpt"):
        assert latest(tmp_path) == older
    with pytest.warns(UserWarning):
        assert load(tmp_path)[1] == {"n": 1}


def test_any_flipped_bit_and_any_added_byte_is_found(tmp_path):
    path = save(tmp_path, run_tree(), {}, step=1)
    whole = path.read_bytes()
    for position in (*range(70), *range(70, len(whole), 41), len(whole) - 1):
        flipped = bytearray(whole)
        flipped[position] ^= 1 << (position % 8)
        path.write_bytes(flipped)
        with pytest.raises(CheckpointError, match=r"corrupt|not an Ajax checkpoint|of format|cut short"):
            load(path)
    path.write_bytes(whole + b"\0")
    with pytest.raises(CheckpointError, match="corrupt"):
        load(path)


def test_a_foreign_file_and_a_later_format_are_named(tmp_path, monkeypatch):
    path = tmp_path / "model.zip"
    path.write_bytes(b"PK\3\4" + bytes(100))
    with pytest.raises(CheckpointError, match="is not an Ajax checkpoint"):
        load(path)
    monkeypatch.setattr(checkpoint, "FORMAT", 2)
    later = save(tmp_path, {"x": 1}, {}, step=1)
    monkeypatch.undo()
    with pytest.raises(CheckpointError, match="is of format 2; this version of Ajax reads format 1"):
        load(later)


def test_when_all_are_corrupt_each_is_named(tmp_path):
    for step in (1, 2):
        save(tmp_path, {"x": 1}, {}, step=step).write_bytes(b"junk")
    with pytest.raises(CheckpointError, match=r"no checkpoint in .* can be used: .*000002.ckpt.*000001.ckpt"):
        load(tmp_path)


def test_a_write_that_the_disk_garbles_is_noticed_before_older_ones_go(tmp_path, monkeypatch):
    older = [save(tmp_path, {"x": i}, {}, step=i) for i in (1, 2)]
    write = checkpoint._write

    def garbling(file, header, leaves):
        write(file, header, leaves)
        file.seek(-1, 2)
        file.write(b"?")

    monkeypatch.setattr(checkpoint, "_write", garbling)
    with pytest.raises(CheckpointError, match=r"000003.ckpt is corrupt"):
        save(tmp_path, {"x": 3}, {}, step=3)
    assert checkpoints(tmp_path)[:2] == older


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT, errno.EIO])
def test_a_failing_disk_leaves_the_older_ones_and_no_litter(tmp_path, monkeypatch, call, number):
    older = [save(tmp_path, {"x": i}, {}, step=i) for i in (1, 2)]

    def fail(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(files.os, call, fail)
    with pytest.raises(CheckpointError, match=rf"can't write the checkpoint .*: {os.strerror(number)}\. Older"):
        save(tmp_path, {"x": 3}, {}, step=3)
    monkeypatch.undo()
    assert sorted(tmp_path.iterdir()) == older
    assert load(tmp_path, like={"x": 0})[0] == {"x": 2}


def test_a_really_full_disk(tiny_disk):
    small, large = {"x": np.zeros(1000)}, {"x": np.zeros(100_000)}
    older = save(tiny_disk, small, {}, step=1)
    with pytest.raises(CheckpointError, match="No space left on device"):
        save(tiny_disk, large, {}, step=2)
    assert list(tiny_disk.iterdir()) == [older]
    save(tiny_disk, small, {}, step=3)


def test_a_really_read_only_disk(tiny_disk):
    older = save(tiny_disk, {"x": 1}, {}, step=1)
    subprocess.run(["mount", "-o", "remount,ro", tiny_disk], check=True)
    with pytest.raises(CheckpointError, match="Read-only file system"):
        save(tiny_disk, {"x": 2}, {}, step=2)
    assert latest(tiny_disk) == older


KILLED_SAVERS = """
import os, random, signal, sys, time
import numpy as np
from ajax.logging.checkpoint import load, save

folder, moments, step = sys.argv[1], random.Random(0), 0
for _ in range(30):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        while True:
            step += 1
            save(folder, {"x": np.full(30_000, step)}, {"step": step}, step=step)
            os.write(writer, step.to_bytes(8, "little"))
    os.close(writer)
    os.read(reader, 8)
    time.sleep(moments.uniform(0, 0.02))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    reported = int.from_bytes(os.read(reader, 1 << 16)[-8:], "little")
    tree, meta = load(folder, like={"x": np.zeros(30_000, int)})
    assert (tree["x"] == meta["step"]).all() and meta["step"] >= reported, (meta, reported)
    step = meta["step"]
    os.close(reader)
print("always whole")
"""


def test_killed_at_thirty_random_moments_the_latest_is_whole_and_no_older_than_reported(tmp_path):
    # One process forks the savers: to start Python and JAX thirty times would take a minute.
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", KILLED_SAVERS, tmp_path], capture_output=True, text=True
    )
    assert done.stdout == "always whole\n", done.stderr
    assert len(checkpoints(tmp_path)) <= 3
