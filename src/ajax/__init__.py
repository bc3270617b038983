"""Ajax: reinforcement-learning agents in JAX, and a testing system that names an agent's mistake."""
