"""The worker of the benches of work: runs the jobs that it is told by name and times them.

argv[1] is a JSON object: name -> {argv, cwd, environ, repeat, prepare?}. Each line on standard
input is a name; the answer is one line, the nanoseconds of one run and its processor time (means of
`repeat` runs).
What `prepare` does is not timed. Both the bare worker and the boxed one are this program, so the
start of a box is in no number of it.
"""
import json
import os
import signal
import sys
import time

NULL = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)]


def execute(argv, environ):
    pid = os.posix_spawn(argv[0], argv, environ, file_actions=NULL, setsigdef=(signal.SIGPIPE,))
    _, status, usage = os.wait4(pid, 0)
    return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime


def run(job):
    total, processor_s = 0, 0
    os.chdir(job["cwd"])
    for _ in range(job["repeat"]):
        if "prepare" in job and execute(job["prepare"], job["environ"])[0] != 0:
            return "the preparation failed"
        begin = time.perf_counter_ns()
        status, used_s = execute(job["argv"], job["environ"])
        total += time.perf_counter_ns() - begin
        processor_s += used_s
        if status != 0:
            return f"status {status}"
    return f"{total // job['repeat']} {int(processor_s * 1e9) // job['repeat']}"


def main():
    jobs = json.loads(sys.argv[1])
    while line := sys.stdin.readline():
        print(run(jobs[line.strip()]), flush=True)


main()
