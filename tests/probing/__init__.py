"""Probes of agents, and tests of the harness itself."""
