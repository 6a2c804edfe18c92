"""What the exports that people read share: which questions they show, and what they say of the run."""

from __future__ import annotations

import memx
from memx.engine.store.reader import RunRow, Store, Where
from memx.engine.summary import Summary, stage_of
from memx.engine.summary_text import audit_line
from memx.model import Stage


def chosen(where: Where | None) -> Where:
    """The condition of an export for people: as given, else what did not pass."""
    return Where("outcome <> 'PASS'") if where is None else where


def facts_of(run: RunRow) -> list[tuple[str, str]]:
    """What was run, as labels and values; times are those of the run, so that an export is the same tomorrow."""
    settings, manifest = run.settings, run.manifest
    sha256 = run.dataset_sha256[:12]
    dataset = " ".join(
        part for part in (run.dataset, run.dataset_version, f"sha256 {sha256}" if sha256 else "") if part
    )
    options = ", ".join(f"{name}={value}" for name, value in (settings.get("adapter_options") or {}).items())
    answers = settings.get("answer_model") or "none"
    commit = (manifest.get("git") or {}).get("commit")
    found = [
        ("dataset", dataset),
        ("memory system", f"{run.adapter} ({options})" if options else run.adapter),
        ("judge", run.judge),
        ("judge audit", audit_line(run)),
        ("answers by", "the retrieved text, or the memory system" if answers == "none" else answers),
        ("top k", str(settings.get("top_k", ""))),
        ("began", f"{run.started_at:%Y-%m-%d %H:%M} UTC"),
        ("state", run.state),
        ("commit", commit or ""),
        ("not a measurement", "; ".join(manifest.get("not_publishable_because") or [])),
        ("memx", str(manifest.get("memx") or memx.__version__)),
    ]
    return [(label, value) for label, value in found if value]


def stage_rows(summary: Summary) -> list[tuple[str, str, int, float]]:
    """Stage, cause, FAILs and their share of all FAILs, in the order in which stages are tried."""
    order = [str(stage) for stage in Stage]
    causes = sorted(summary.causes.items(), key=lambda pair: (order.index(stage_of(pair[0])), -pair[1], pair[0]))
    rows = [(stage_of(cause), cause, count, count / summary.failed) for cause, count in causes]
    if summary.undiagnosed:
        rows.append(("not diagnosed", "", summary.undiagnosed, summary.undiagnosed / summary.failed))
    return rows


def calibration_lines(store: Store) -> list[str]:
    """How far the stages and verdicts can be trusted, as far as it was measured."""
    return ["How often such a diagnosis is right is measured by memx calibrate."]
