"""Agents of one's own, as a user would write them, to be probed."""
