"""`separate_on_ray`: separates many files on a Ray cluster, one file at a time in each actor, resumable by file.

Every file becomes a file of the same name in a folder that all nodes can write. An actor writes it under a name of its
own, and renames it when it is complete: an actor that is killed leaves nothing that counts, and its file is separated
again on another node. No row goes through Ray.
"""

from __future__ import annotations

import os
import pickle
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from asides import __version__
from asides.datasets.block_job import BlockJob
from asides.datasets.files import find_form
from asides.datasets.run import Plan, SeparationRun
from asides.datasets.tally import Tally
from asides.values.errors import AsidesError, ConfigError
from asides_batch.ray_cluster import count_cpus, describe_problem, open_cluster

_OWN_FOLDER = "_separate"
"""Inside the output, for reports and files under way. Readers of Parquet folders ignore names that begin so."""


class FileDone(msgspec.Struct, frozen=True):
    """The report of a file that is complete."""

    digest: str
    """Of the job and the input: a file that changed since is separated again."""
    tally: Tally


class FileResult(msgspec.Struct, frozen=True):
    """What an actor did with a file."""

    tally: Tally | None = None
    problem: str = ""
    """Why the file could not be separated."""


class FileTask(msgspec.Struct, frozen=True):
    """A file to separate, and the folder for its result."""

    input: str
    name: str
    """The name of its result in the folder."""
    folder: str

    @property
    def target(self) -> Path:
        """The result."""
        return Path(self.folder, self.name)

    @property
    def report(self) -> Path:
        """The report, which counts once the result is there."""
        return Path(self.folder, _OWN_FOLDER, f"{self.name}.json")

    @property
    def undecided(self) -> Path:
        """The list of the rows that a person has to look at."""
        return Path(self.folder, _OWN_FOLDER, f"{self.name}.undecided.jsonl")

    def make_plan(self, job: BlockJob, output: Path, undecided: Path) -> Plan:
        """The plan of a run for this file alone."""
        return Plan((self.input,), job, str(output), str(undecided)).settle()

    def read_report(self, job: BlockJob) -> Tally | None:
        """The counts, if the file was separated with this job already."""
        try:
            done = msgspec.json.decode(self.report.read_bytes(), type=FileDone)
        except (OSError, msgspec.DecodeError):
            return None
        plan = self.make_plan(job, self.target, self.undecided)
        return done.tally if done.digest == plan.digest and self.target.exists() else None


def separate_on_ray(
    inputs: Sequence[str],
    folder: str,
    job: BlockJob,
    *,
    undecided: str | None = None,
    address: str | None = None,
    actors: int | None = None,
    on_file: Callable[[str, FileResult], object] | None = None,
) -> tuple[Tally, list[str]]:
    """Separate files into a folder; return the counts of all and the problems of those that could not be separated.

    Files that an earlier run completed are not separated again. `on_file` is called for each file, with its path.
    `undecided` is a file for the rows of all files that a person has to look at.
    """
    tasks = list(_list_tasks(inputs, folder))
    _check_target(tasks, job)
    Path(folder, _OWN_FOLDER).mkdir(parents=True, exist_ok=True)
    tally, problems = Tally(), list[str]()

    def note(task: FileTask, result: FileResult) -> None:
        if result.tally is not None:
            tally.merge(result.tally, task.input, job.show)
        else:
            problems.append(result.problem)
        if on_file is not None:
            on_file(task.input, result)

    waiting: list[FileTask] = []
    for task in tasks:
        done = task.read_report(job)
        if done is None:
            waiting.append(task)
        else:
            note(task, FileResult(done))
    if waiting:
        cpus = min(actors or os.cpu_count() or 1, len(waiting))
        with open_cluster(address, cpus) as ray:
            size = min(actors or count_cpus(ray), len(waiting))
            for place, result in _run(ray, waiting, job, size):
                note(waiting[place], result)
    for attempt in Path(folder, _OWN_FOLDER).glob("attempt-*"):
        shutil.rmtree(attempt, ignore_errors=True)
    if undecided is not None:
        _join([task.undecided for task in tasks], Path(undecided))
    return tally, problems


def _list_tasks(inputs: Sequence[str], folder: str) -> Iterator[FileTask]:
    """The files; those of a folder keep their places in it. Raises ConfigError for two with the same name."""
    home = str(Path(folder).resolve())
    seen: set[str] = set()
    for path in inputs:
        root = Path(path).resolve()
        if root.is_dir():
            below = sorted(file for file in root.rglob("*") if file.is_file() and find_form(file.name).format)
            found = [(file, file.relative_to(root)) for file in below if not _is_hidden(file.relative_to(root))]
        elif root.is_file():
            found = [(root, Path(root.name))]
        else:
            raise ConfigError(f"{path} is neither a file nor a folder. Check the path.")
        for file, name in found:
            if str(name) in seen:
                raise ConfigError(f"two files have the name {name}. Separate their folders one by one.")
            seen.add(str(name))
            yield FileTask(str(file), str(name), home)
    if not seen:
        raise ConfigError("the folder has no files of rows. Name files that end with .parquet or .jsonl, for example.")


def _is_hidden(name: Path) -> bool:
    return any(part.startswith(("_", ".")) for part in name.parts)


def _check_target(tasks: Sequence[FileTask], job: BlockJob) -> None:
    """Raise ConfigError if a file of the folder would be overwritten."""
    for task in tasks:
        if task.target.exists() and task.read_report(job) is None:
            raise ConfigError(
                f"{task.target} exists, and is not of this job. Remove it, or name another folder with -o."
            )


def _run(ray: Any, tasks: Sequence[FileTask], job: BlockJob, size: int) -> Iterator[tuple[int, FileResult]]:
    """Separate the files on a pool of actors, which Ray Data keeps; yields each result with the place of its file."""
    rows = [{"place": place, "task": msgspec.json.encode(task)} for place, task in enumerate(tasks)]
    files = ray.data.from_items(rows, override_num_blocks=len(rows))
    files.context.enable_progress_bars = False
    files.context.print_on_execution_start = False
    done = files.map_batches(
        FileSeparator,
        fn_constructor_args=(pickle.dumps(job), __version__),
        batch_size=1,
        num_cpus=1,
        compute=ray.data.ActorPoolStrategy(size=size, max_tasks_in_flight_per_actor=1),
    )
    try:
        for row in done.iter_rows():
            yield int(row["place"]), msgspec.json.decode(row["result"], type=FileResult)
    except AsidesError:
        raise
    except Exception as problem:  # noqa: BLE001 - Ray raises errors of many kinds
        raise ConfigError(
            f"the actors of Ray have failed: {describe_problem(problem)}. Complete files are kept. Install the "
            "same version of asides on every node, and run the same command again."
        ) from None


class FileSeparator:
    """Ray Data keeps one in each actor, and calls it for each file."""

    def __init__(self, job: bytes, version: str) -> None:
        self._job: BlockJob = pickle.loads(job)  # noqa: S301 - the driver of this run wrote it
        self._version = version

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, list[Any]]:
        """Separate a file, and return what was done, as a batch of Ray Data."""
        task = msgspec.json.decode(bytes(batch["task"][0]), type=FileTask)
        if self._version == __version__:
            result = separate_file(task, self._job)
        else:
            versions = f"a worker of Ray has asides {__version__}, and the driver {self._version}"
            result = FileResult(problem=f"{versions}. Install the same version on every node.")
        return {"place": list(batch["place"]), "result": [msgspec.json.encode(result)]}


def separate_file(task: FileTask, job: BlockJob) -> FileResult:
    """Separate a file under another name, and rename the result when everything else is there."""
    done = task.read_report(job)
    if done is not None:  # The actor was killed after it had finished.
        return FileResult(done)
    attempt = Path(task.folder, _OWN_FOLDER, f"attempt-{uuid.uuid4().hex}")
    output, undecided = attempt / Path(task.name).name, attempt / "undecided"
    try:
        attempt.mkdir(parents=True)
        plan = task.make_plan(job, output, undecided)
        tally = SeparationRun(plan).run()
        task.target.parent.mkdir(parents=True, exist_ok=True)
        task.report.parent.mkdir(parents=True, exist_ok=True)
        report = attempt / "report"
        report.write_bytes(msgspec.json.encode(FileDone(plan.digest, tally)))
        undecided.replace(task.undecided)
        report.replace(task.report)
        output.replace(task.target)
    except AsidesError as error:
        return FileResult(problem=str(error))
    except OSError as error:
        return FileResult(problem=f"{task.input} cannot be separated: {error.strerror or error}.")
    finally:
        shutil.rmtree(attempt, ignore_errors=True)
    return FileResult(tally)


def _join(lists: Sequence[Path], target: Path) -> None:
    with target.open("wb") as joined:
        for path in lists:
            if path.exists():
                with path.open("rb") as file:
                    shutil.copyfileobj(file, joined)
