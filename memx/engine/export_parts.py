"""What the exports that people read share: which questions they show, and what they say of the run."""

from __future__ import annotations

import memx
from memx.engine.store.reader import RunRow, Where
from memx.engine.summary import Share, Summary, stage_of
from memx.engine.summary_text import audit_line, percent
from memx.model import Stage


def chosen(where: Where | None) -> Where:
    """The condition of an export for people: as given, else what failed or broke."""
    return Where("outcome IN ('FAIL', 'ERROR') OR error IS NOT NULL") if where is None else where


def which(where: Where | None) -> str:
    """What the questions of such an export are, in words."""
    return "that failed or broke" if where is None else "that the filter keeps"


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
        ("control arms", _arms(run)),
        ("noticed", "; ".join(f"{row['text']} ({row['cases']} cases)" for row in run.summary.get("findings") or [])),
        ("not a measurement", "; ".join(manifest.get("not_publishable_because") or [])),
        ("memx", str(manifest.get("memx") or memx.__version__)),
    ]
    return [(label, value) for label, value in found if value]


def _arms(run: RunRow) -> str:
    """Accuracy of each control arm and how many questions have which tag; empty where none ran."""
    controls = run.summary.get("controls") or {}
    arms = [
        f"{name} {arm['value'] * 100:.1f} %"
        for name, arm in controls.get("arms", {}).items()
        if arm["value"] is not None
    ]
    return ", ".join(arms + [f"{count} {tag}" for tag, count in controls.get("tags", {}).items() if count])


def stage_rows(summary: Summary) -> list[tuple[str, str, int, float]]:
    """Stage, cause, FAILs and their share of all FAILs, in the order in which stages are tried."""
    order = [str(stage) for stage in Stage]
    causes = sorted(summary.causes.items(), key=lambda pair: (order.index(stage_of(pair[0])), -pair[1], pair[0]))
    rows = [(stage_of(cause), cause, count, count / summary.failed) for cause, count in causes]
    if summary.undiagnosed:
        rows.append(("not diagnosed", "", summary.undiagnosed, summary.undiagnosed / summary.failed))
    return rows


def calibration_lines(run: RunRow) -> list[str]:
    """How often such a diagnosis is right, as far as it was measured in this directory."""
    if not run.calibrations:
        return ["How often such a diagnosis is right was not measured here; memx calibrate does it."]
    lines = [f"How often diagnosis named faults that were planted into {run.calibrations[0].dataset}:"]
    for one in run.calibrations:
        told = "with" if one.provenance else "without"
        stage, cause = Share(one.stage_right, one.faults), Share(one.cause_right, one.faults)
        low, high = stage.interval or (0.0, 1.0)
        lines.append(
            f"{one.store} store {told} provenance: stage {percent(stage)} ({low * 100:.1f} to {high * 100:.1f}), "
            f"cause {percent(cause)}, of {one.faults} faults"
        )
    return lines
