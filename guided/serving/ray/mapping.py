"""Tasks mapped over the actors of a Ray cluster, each of which holds a model; results come back one by one.

Ray Data moves the tasks.  Results come as they are finished, so an interrupted run has lost only what was being worked
on.  Each worker loads the model for itself, from the same name or path, which must exist on its machine.
"""

from __future__ import annotations

import json
import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from guided.errors import GuidedError

__all__ = ["Worker", "map_on_ray"]


class Worker(ABC):
    """What an actor runs; ``told`` is what all tasks have in common.  It loads the model with its first task."""

    def __init__(self, told: Any) -> None:
        self.told = told
        self._loaded: Any = None

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[str]]:
        """The lines of a batch ``{"task": [JSON]}``."""
        lines = []
        for written in batch["task"]:
            if self._loaded is None:
                import torch

                # As many threads as Ray gave the worker CPUs, else the workers of a machine get in each other's way.
                torch.set_num_threads(1)
                self._loaded = self.load()
            lines.append(self.answer(self._loaded, json.loads(str(written))))
        return {"line": lines}

    @abstractmethod
    def load(self) -> Any:
        """What answers tasks."""

    @abstractmethod
    def answer(self, loaded: Any, task: dict[str, Any]) -> str:
        """The line of one task's result."""


def map_on_ray(
    worker: type[Worker],
    told: Any,
    tasks: Sequence[dict[str, Any]],
    *,
    workers: int,
    model: str,
    device: str | None,
    on_line: Callable[[str], None],
    on_stage: Callable[[str], None] | None = None,
) -> None:
    """Map tasks over ``workers`` actors, of one CPU each and of one GPU where ``device`` is a GPU.

    A task is JSON data; ``told`` may be anything that can be pickled.  ``on_line`` gets each line as it comes, in any
    order.  Uses the Ray that this process is connected to, else the cluster that ``RAY_ADDRESS`` names, else a local
    one that is shut down in the end.  Raises `GuidedError` without the package ray, and where a worker failed.
    """
    if not tasks:
        return
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise GuidedError(
            "--ray needs the package ray", remedy="Install it: pip install 'guided-decoding[ray]'."
        ) from error
    report = on_stage or (lambda stage: None)
    ours = not ray.is_initialized()
    if ours:
        report("starting Ray")
        ray.init(**_start_options(workers))
    try:
        context = ray.data.DataContext.get_current()
        # Progress is shown by whoever called, and Ray's log goes to its own files in any case.
        context.enable_progress_bars = False
        logging.getLogger("ray.data").setLevel(logging.CRITICAL)
        # Anything but a line is a failure of a worker itself, which trying again would only repeat.
        context.max_errored_blocks = 0
        items = [{"task": json.dumps(task)} for task in tasks]
        report(f"{workers} workers load {model}")
        # A block for each task: a block is what a worker hands back, and what an interruption loses.
        lines = ray.data.from_items(items, override_num_blocks=len(items)).map_batches(
            worker,
            fn_constructor_args=(told,),
            batch_size=1,
            compute=ray.data.ActorPoolStrategy(size=workers),
            num_cpus=1,
            num_gpus=1 if (device or "").startswith("cuda") else 0,
        )
        for item in lines.iter_rows():
            on_line(item["line"])
    except ray.exceptions.RayError as error:
        raise GuidedError(
            f"a worker failed: {_cause(error)}",
            remedy="What was finished is kept: the same command goes on. Check the model's name on every machine.",
        ) from error
    finally:
        if ours:
            ray.shutdown()


def _start_options(workers: int) -> dict[str, Any]:
    """For `ray.init`: quiet, and where no cluster is named, local with as many CPUs as there are workers."""
    # The only way to keep Ray's native part from writing to the terminal.
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    options: dict[str, Any] = {"include_dashboard": False, "log_to_driver": False, "logging_level": "ERROR"}
    if not os.environ.get("RAY_ADDRESS"):
        options["num_cpus"] = workers + 1
    return options


def _cause(error: BaseException) -> str:
    """What the worker raised: the last line of the innermost traceback, which Ray prints first."""
    innermost = str(error).split("The above exception was the direct cause", maxsplit=1)[0]
    lines = [line.strip() for line in innermost.splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
