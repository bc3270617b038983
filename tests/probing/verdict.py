"""`python -m tests.probing.verdict ladder|choose|certify|alarms|answers MODULE ...`, for this package's modules."""

from __future__ import annotations

from ajax.probing.calibrate import main

if __name__ == "__main__":
    main(package="tests.probing")
