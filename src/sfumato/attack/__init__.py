"""What an attacker with other data can do to a release."""
