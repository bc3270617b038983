"""A disk small enough to fill."""

import subprocess

import pytest


@pytest.fixture
def tiny_disk(tmp_path):
    """A real file system of 256 KiB; skipped where mounting isn't allowed."""
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder], capture_output=True)
    if done.returncode:
        pytest.skip("mounting a tmpfs needs root")
    yield folder
    subprocess.run(["umount", folder], check=True)
