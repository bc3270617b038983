"""The trackers write what they are given, and say which extra is missing."""

import struct
import sys

import pytest

from ajax.core.errors import CapabilityError
from ajax.logging.backends import TensorBoardLogger, WandbLogger


def scalars(folder) -> list[tuple[int, str, float]]:
    """Return (step, name, value) of the event files right in a folder, in order."""
    from tensorboardX.proto.event_pb2 import Event

    found = []
    for file in sorted(folder.glob("events.*")):
        data = file.read_bytes()
        while data:
            (size,) = struct.unpack("<Q", data[:8])
            event = Event.FromString(data[12 : 12 + size])
            found += [(event.step, value.tag, value.simple_value) for value in event.summary.value]
            data = data[16 + size :]
    return found


def test_tensorboard_gets_the_run_and_each_seed(tmp_path):
    pytest.importorskip("tensorboardX")
    logger = TensorBoardLogger(tmp_path)
    logger.log(1000, {"return": 21.5, "loss": 0.25})
    logger.log(1000, {"return": 20.0}, seed=0)
    logger.log(2000, {"return": 30.0}, seed=0)
    logger.close()
    assert scalars(tmp_path) == [(1000, "return", 21.5), (1000, "loss", 0.25)]
    assert scalars(tmp_path / "seed_0") == [(1000, "return", 20.0), (2000, "return", 30.0)]


def test_wandb_offline_writes_a_run_to_its_folder(tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    logger = WandbLogger("ajax", name="x", config={"gamma": 0.99}, folder=tmp_path, offline=True)
    logger.log(1000, {"return": 21.5})
    logger.log(500, {"return": 20.0}, seed=3)
    logger.close()
    wandb.teardown()  # its service process writes the end of the file after the run is finished
    (file,) = tmp_path.glob("wandb/offline-run-*/run-*.wandb")
    data = file.read_bytes()
    assert b"return" in data
    assert b"seed_3/return" in data


@pytest.mark.parametrize(
    ("make", "module", "extra"),
    [
        (lambda: TensorBoardLogger("x"), "tensorboardX", "tensorboard"),
        (lambda: WandbLogger("x"), "wandb", "wandb"),
    ],
)
def test_a_missing_extra_is_named(monkeypatch, make, module, extra):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(CapabilityError, match=rf"Logger needs an extra: pip install 'ajax-agents\[{extra}\]'"):
        make()
