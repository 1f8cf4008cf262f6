"""Table 2 of Yang et al. (2019), beside ours."""
