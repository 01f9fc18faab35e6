"""The gated suites of base and head, as far as the two are built."""

import re
from functools import cached_property

from tilegate_ci.core.files import GateError
from tilegate_ci.core.names import rung_of, search
from tilegate_ci.core.progress import message
from tilegate_ci.measure import conditions
from tilegate_ci.measure.builds import build
from tilegate_ci.measure.job import Job
from tilegate_ci.measure.suite import CANARIES, read_suite, stages_of
from tilegate_ci.model import RunFile


class Suites:
    """`head` and `base` are the names of their benchmarks; those of base are known once it has been
    looked at."""

    def __init__(self, job: Job) -> None:
        """The head must be built."""
        self.job = job
        stages = stages_of(job.head.build)
        self.head = [n for n in job.head_names(stages) if rung_of(n) not in self.unable]
        if not self.head:
            raise GateError(f"{job.head.build}: no rung in it, so that no benchmark is gated")
        self.base: set[str] = set()

    @cached_property
    def unable(self) -> set[str]:
        """The rungs that this GPU cannot run, which the user is told."""
        able = conditions.compute_capability()
        stages = stages_of(self.job.head.build)
        beyond = [s for s in stages if able is not None and s.compute_capability > able]
        for stage in beyond:
            message(
                f"{stage.name} is left out: it needs compute capability "
                f"{stage.compute_capability}, and this GPU has {able}"
            )
        return {stage.name for stage in beyond}

    @property
    def names(self) -> list[str]:
        """Of both suites, in the head's order."""
        return [name for name in self.head if name in self.base]

    @property
    def canaries(self) -> list[str]:
        return [name for name in CANARIES if name in self.names]

    @property
    def new(self) -> list[str]:
        return [name for name in self.head if name not in self.base]

    @property
    def gone(self) -> list[str]:
        return sorted(self.base - {*self.head})

    def know_base(self, stored: RunFile | None) -> None:
        """Fills `base`. A base that is not built has, of the head's rungs, those that are in
        its baseline. Where its baseline has another one, only a build tells whether the base has
        it still, and the head has lost it."""
        job, ladder = self.job, stages_of(self.job.head.build)
        stages = stages_of(job.base.build)
        if not stages and stored is not None:
            recorded = {rung_of(name).partition(".")[0] for name in stored.benchmarks}
            stages = [stage for stage in ladder if stage.name in recorded]
            if ladder and recorded - {stage.name for stage in ladder}:
                build(job.base, job.options.cmake)
                stages = stages_of(job.base.build) or stages
        suite = read_suite(stages, job.base.suite)
        suite = [name for name in suite if rung_of(name) not in self.unable]
        chosen = search(re.compile(job.options.filter), suite)
        self.base = {*chosen, *(name for name in CANARIES if name in suite)}

    def look_at_base(self, stored: RunFile | None) -> None:
        """As know_base, by a build."""
        build(self.job.base, self.job.options.cmake)
        self.know_base(stored)
