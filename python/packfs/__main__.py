"""Runs the program packfs that came with this package: ``python -m packfs``."""

import os
import sys
import sysconfig


def main() -> None:
    """Replaces this process by the program.

    Looks in the folder of scripts of this environment, then in that of the user.
    """
    folders = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", scheme="posix_user")]
    for folder in folders:
        program = os.path.join(folder, "packfs")
        if os.access(program, os.X_OK):
            os.execv(program, ["packfs", *sys.argv[1:]])
    sys.exit(f"packfs: cannot find the program in {' or '.join(folders)}: the wheel was built without it")


if __name__ == "__main__":
    main()
