"""What classifiers keep of public tables under k-anonymity: ours, other packages, and published figures."""
