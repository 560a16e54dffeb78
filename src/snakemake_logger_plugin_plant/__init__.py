"""What a run shows on the screen: one line a finished job, how far it is, and the log of a job that failed.

Snakemake finds this package by its name, and profiles/default asks for it. A dry run is shown as Snakemake shows it.
Snakemake's own log under .snakemake/log keeps every detail.
"""

import json
from dataclasses import dataclass, field
from logging import ERROR, LogRecord
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from snakemake.logging import show_logs
from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent
from snakemake_interface_logger_plugins.settings import LogHandlerSettingsBase

QUIET = {
    LogEvent.WORKFLOW_STARTED, LogEvent.RESOURCES_INFO, LogEvent.JOB_STARTED, LogEvent.GROUP_INFO, LogEvent.PROGRESS,
    LogEvent.RULEGRAPH,
}  # fmt: skip
ROUTINE = (
    "Assuming unrestricted shared", "Building DAG", "Conda environments", "Execute ", "Group jobs", "Provided cores",
    "Rules claiming more threads", "Select jobs", "Singularity containers", "Using shell", "host:", "None",
)  # fmt: skip
"""How the messages of every run begin, which tell nothing of this one."""


@dataclass
class LogHandlerSettings(LogHandlerSettingsBase):
    jobs: str = field(
        default="", metadata={"help": "Write the jobs of a dry run to this file, a line of JSON each; show nothing."}
    )


class LogHandler(LogHandlerBase):
    """The progress line is for terminals; a file gets the lines alone."""

    writes_to_stream = True
    writes_to_file = False
    has_filter = False
    has_formatter = False
    needs_rulegraph = False

    def __post_init__(self) -> None:
        self.console = Console(stderr=True, soft_wrap=True, highlight=False, markup=False, emoji=False)
        self.progress = Progress(
            TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
            TextColumn("left:"), TimeRemainingColumn(), console=self.console, transient=True,
            speed_estimate_period=7 * 24 * 3600, disable=not self.console.is_terminal,
        )  # fmt: skip
        self.names: dict[int, str] = {}
        self.done, self.total = 0, 0

    def emit(self, record: LogRecord) -> None:
        try:
            if isinstance(self.settings, LogHandlerSettings) and self.settings.jobs:
                return self.keep(record, Path(self.settings.jobs))
            event = None if self.common_settings.dryrun else getattr(record, "event", None)
            match event:
                case LogEvent.RUN_INFO:
                    self.start(record.__dict__["stats"]["total"])
                case LogEvent.JOB_INFO:
                    self.begin(record.__dict__)
                case LogEvent.JOB_FINISHED:
                    self.finish(record.__dict__["job_id"])
                case LogEvent.JOB_ERROR:
                    self.fail(record.__dict__)
                case LogEvent.ERROR if "CalledProcessError" in record.getMessage():
                    pass  # the command of a job whose log is shown
                case _ if event not in QUIET:
                    self.tell(self.format(record))
        except Exception:  # noqa: BLE001  # as every handler of `logging`: the run goes on, and the fault is shown
            self.handleError(record)

    def keep(self, record: LogRecord, file: Path) -> None:
        """Add a job of a dry run to the file. Errors go where Snakemake's own errors go."""
        if record.levelno >= ERROR:
            self.tell(self.format(record))
        if getattr(record, "event", None) is LogEvent.JOB_INFO:
            job = record.__dict__
            known = {"rule": job["rule_name"], "wildcards": dict(job["wildcards"]), "input": list(job["input"]),
                     "output": list(job["output"]), "benchmark": job["benchmark"]}  # fmt: skip
            with file.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(known) + "\n")

    def start(self, total: int) -> None:
        self.total = total
        self.tell(f"{total} job{'s' if total > 1 else ''}")
        self.progress.start()
        self.task = self.progress.add_task("", total=total)

    def begin(self, job: dict[str, Any]) -> None:
        names = ", ".join(map(str, job["wildcards"].values()))
        self.names[job["jobid"]] = f"{job['rule_name']} ({names})" if names else job["rule_name"]
        if self.total:
            self.progress.update(self.task, description=self.names[job["jobid"]])

    def finish(self, job: int) -> None:
        self.done += 1
        name = self.names.get(job, "")  # `--quiet rules` keeps names back
        self.tell(f"[{self.done}/{self.total}] {name}".rstrip())
        self.progress.advance(self.task)

    def fail(self, job: dict[str, Any]) -> None:
        logs = show_logs(job["log"]) if self.common_settings.show_failed_logs else job["log"]
        said = [job["rule_msg"]] if job.get("rule_msg") else []  # by the cluster, such as a time limit
        self.tell("\n".join([f"FAILED: {self.names.get(job['jobid'], job['rule_name'])}", *said, *logs]))

    def tell(self, text: str) -> None:
        if not text or text.startswith(ROUTINE):
            return
        if self.common_settings.dryrun:  # thousands of long lines and no bar: rich would take 0.4 s
            print(text, file=self.console.file)
        else:
            self.console.print(text)

    def close(self) -> None:
        self.progress.stop()
        super().close()
