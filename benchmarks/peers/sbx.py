"""SBX (Stable-Baselines3's agents in JAX; https://github.com/araffin/sbx)."""

from __future__ import annotations

from benchmarks import child
from benchmarks.peers.baselines import measurements

if __name__ == "__main__":
    child.main(measurements("sbx"))
