"""How messages travel between parties: channels, mutual TLS, certificates and keys."""
