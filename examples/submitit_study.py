"""A whole study through submitit: one job a run, then the comparison and the page.

    pip install submitit
    python examples/submitit_study.py cifar10 /shared/cifar10 --partition batch --cpus 16 --hours 12

Each job gives `leaklab study FILE --out DIR --run K` and may be stopped at any moment: exit code 75 says that
it wrote a checkpoint and wants another turn, which submitit gives it. Without Slurm the same script runs the
jobs on this machine (--cluster local), which is a good way to try it.
"""

import argparse
import json
import signal
import subprocess

import submitit

STOPPED = 75


class Task:
    """One call of leaklab, which submitit repeats for as long as it asks for another turn."""

    def __init__(self, command):
        self.command = command
        self.process = None

    def __call__(self):
        self.process = subprocess.Popen(self.command)
        # submitit warns with SIGUSR2 before the time is over; leaklab then writes a checkpoint and leaves.
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
        """What submitit is to do with a job that was preempted: the same again."""
        return submitit.helpers.DelayedSubmission(Task(self.command))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study", help="a study file, or the name of a built-in study")
    parser.add_argument("out", help="the study's folder, on a file system that all nodes see")
    parser.add_argument("--cluster", default=None, help="slurm or local; found out if not given")
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
