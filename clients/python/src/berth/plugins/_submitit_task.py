"""The process of a task of submitit: its output goes to submitit's files, then submitit calls the function."""
import os
import sys


def main() -> None:
    """FOLDER is the argument."""
    from berth.plugins.submitit import log_paths
    for path, descriptor in zip(log_paths(sys.argv[1]), (1, 2)):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        os.dup2(file, descriptor)
        os.close(file)
    from submitit.core.submission import submitit_main
    submitit_main()


if __name__ == "__main__":
    main()
