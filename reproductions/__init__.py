"""Reproductions: one folder a paper, the paper's figures beside ours."""
