"""A run: cases, ingest, snapshots, queries, candidates, verdicts, diagnoses, store."""
