"""How episodes end: terminations against time limits, rollouts' ends, environments out of step, the rewards' scale."""

from ajax.probing.suites.episode_ends import average, boxes, commanded, dagger, discrete, linear

CASES = {
    case.id: case
    for case in (*average.CASES, *discrete.CASES, *boxes.CASES, *linear.CASES, *dagger.CASES, *commanded.CASES)
}

ANSWER_DIGEST = "e4c2319f2d0c"
