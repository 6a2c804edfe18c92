"""Why a question failed."""
