"""Training: from an agent and an environment to a `Result`."""
