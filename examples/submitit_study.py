"""Runs a whole study with submitit: one job per run, then the comparison and the page.

    pip install submitit
    python examples/submitit_study.py cifar10 /shared/cifar10 --partition batch --cpus 16 --hours 12

Each job runs `leaklab study FILE --out DIR --run K` and may be stopped at any moment: exit code 75 means that
it wrote a checkpoint and must be submitted again, which submitit does. Without Slurm, the same script runs
the jobs on this machine (--cluster local), which is a good way to test it.
"""

import argparse
import json
import signal
import subprocess

import submitit

STOPPED = 75


class Task:
    """One call of leaklab, which submitit repeats until it has finished."""

    def __init__(self, command):
        self.command = command
        self.process = None

    def __call__(self):
        self.process = subprocess.Popen(self.command)
        # submitit sends SIGUSR2 before the time limit; leaklab then writes a checkpoint and exits.
        before = signal.signal(signal.SIGUSR2, self.warn)
        try:
            code = self.process.wait()
        finally:
            signal.signal(signal.SIGUSR2, before)
        if code == STOPPED:
            return submitit.helpers.DelayedSubmission(Task(self.command))
        if code != 0:
            raise RuntimeError(f"{' '.join(self.command)} failed with code {code}")
        return code

    def warn(self, _signal, _frame):
        self.process.send_signal(signal.SIGUSR2)

    def checkpoint(self):
        """Called by submitit when a job was preempted: the job is submitted again."""
        return submitit.helpers.DelayedSubmission(Task(self.command))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study", help="a study file, or the name of a built-in study")
    parser.add_argument("out", help="the study's folder, on a file system that all nodes share")
    parser.add_argument("--cluster", default=None, help="slurm or local; detected if not given")
    parser.add_argument("--partition", default=None)
    parser.add_argument("--cpus", type=int, default=1)
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--leaklab", default="leaklab", help="the program")
    arguments = parser.parse_args()

    study = [arguments.leaklab, "study", arguments.study, "--out", arguments.out]
    status = json.loads(subprocess.check_output([*study, "--status", "--json"]))
    missing = [run["index"] for run in status["runs"] if run["state"] != "done"]

    executor = submitit.AutoExecutor(folder=f"{arguments.out}/submitit", cluster=arguments.cluster)
    executor.update_parameters(
        timeout_min=int(60 * arguments.hours),
        cpus_per_task=arguments.cpus,
        slurm_partition=arguments.partition,
    )
    threads = ["--threads", str(arguments.cpus), "--quiet"]
    with executor.batch():
        jobs = [executor.submit(Task([*study, "--run", str(index), *threads])) for index in missing]
    for job in jobs:
        job.result()
    print(subprocess.check_output([*study, "--compare", *threads], text=True).strip())


if __name__ == "__main__":
    main()
