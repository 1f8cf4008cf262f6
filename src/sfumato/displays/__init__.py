"""Pictures of what is known about a release, from plain numbers; nothing here computes them or opens a window."""
