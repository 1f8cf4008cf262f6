"""The independent audit: re-derives every promise of a release from the tables and the manifest alone.

It shares no code with the mechanisms: it counts with its own functions and holds its own definitions.
"""

from sfumato.audit.auditor import AuditorHas
from sfumato.audit.checks import AuditReport, Check
from sfumato.audit.profile import risk_profile
from sfumato.audit.verify import audit_release, measured_level

__all__ = ["AuditReport", "AuditorHas", "Check", "audit_release", "measured_level", "risk_profile"]
