"""The project file ``sfumato.toml``: ``file`` reads it, ``edit`` changes it, ``describe`` makes one from a table."""
