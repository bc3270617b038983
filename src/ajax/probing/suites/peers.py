"""Every case of other libraries' agents, by id: `p0a-sb3:DQN`."""

from ajax.probing.baselines import PACKAGES
from ajax.probing.suites.baselines import BUILDERS, cases

CASES = {case.id: case for library in PACKAGES for agent in BUILDERS for case in cases(library, agent)}

ANSWER_DIGEST = "3ef0e217cd5d"
