"""Stable-Baselines3 (PyTorch; https://github.com/DLR-RM/stable-baselines3), on one thread.

More threads slow networks this small down, and collapse on a busy machine.
"""

from __future__ import annotations

import os

from benchmarks import child
from benchmarks.peers.baselines import measurements

if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"  # read when torch is imported
    child.main(measurements("stable_baselines3"))
