"""How episodes end: terminations against time limits, rollouts' ends, environments out of step, the rewards' scale."""

from ajax.probing.suites.episode_ends import boxes, commanded, discrete, linear

CASES = {case.id: case for case in (*discrete.CASES, *boxes.CASES, *linear.CASES, *commanded.CASES)}

ANSWER_DIGEST = "179223a45c56"
