"""The conformance kit: does an adapter show what is really in its memory system, and nothing else?

``memx adapters check NAME`` runs it, and so does anybody's test through ``memx.adapters.conformance.testing``.
"""

from memx.adapters.conformance.kit import check_adapter, check_names
from memx.adapters.conformance.report import Outcome, Report, Result

__all__ = ["Outcome", "Report", "Result", "check_adapter", "check_names"]
