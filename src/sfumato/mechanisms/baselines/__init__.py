"""Mechanisms that add noise or flip bits: the baselines that the containment paper compares itself with."""
