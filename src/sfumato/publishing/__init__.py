"""From a proposal to files: :mod:`.publish` audits and writes, whatever way the proposal was found."""
