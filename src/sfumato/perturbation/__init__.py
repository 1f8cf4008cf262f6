"""Mechanisms that add noise: the baselines that the containment paper compares itself with."""
