"""`python -m tests.probing.verdict ladder|choose|certify|answers MODULE ...`, for the modules of this package."""

from __future__ import annotations

from ajax.probing.calibrate import main

if __name__ == "__main__":
    main(package="tests.probing")
