"""The process of a task of submitit: its output goes to submitit's files, then submitit calls the function."""
import os
import signal
import sys
import time

OTHERS_S = 30


def main() -> None:
    """FOLDER is the argument."""
    from berth.plugins.submitit import log_paths
    for path, descriptor in zip(log_paths(sys.argv[1]), (1, 2)):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        os.dup2(file, descriptor)
        os.close(file)
    from submitit.core.submission import submitit_main
    try:
        submitit_main()
    except Exception:
        let_others_end(sys.argv[1])
        raise


def let_others_end(folder: str) -> None:
    """A task that fails ends its gang. First the others get a while to leave their results, and errors of their own."""
    from submitit.core.utils import JobPaths

    from berth.plugins.submitit import BerthJobEnvironment
    environment = BerthJobEnvironment()
    signal.signal(environment._usr_sig(), lambda number, frame: os._exit(1))  # what failed is not checkpointed
    results = [JobPaths(folder, environment.job_id, task).result_pickle for task in range(environment.num_tasks)]
    end = time.monotonic() + OTHERS_S
    while time.monotonic() < end and not all(result.exists() for result in results):
        time.sleep(0.1)


if __name__ == "__main__":
    main()
