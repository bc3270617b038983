"""The agents' probe presets, by the name under which cases and commands know them."""

from ajax.probing.suites.presets import DIGEST, PRESETS, digest, make

__all__ = ["DIGEST", "PRESETS", "digest", "make"]
