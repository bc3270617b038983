"""Environments: the protocol, one adapter a suite, wrappers, names and the checker."""
