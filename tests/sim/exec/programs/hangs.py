"""Starts a child in a session of its own, prints its process id, or writes it to a file, and waits."""

import os
import subprocess
import sys
import time

child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
print(child.pid, flush=True)
if len(sys.argv) > 1:
    path = f"{sys.argv[1]}-{os.environ['RANK']}"
    with open(path + ".part", "w") as file:
        file.write(f"{child.pid} {os.getpid()}")
    os.rename(path + ".part", path)
time.sleep(1000)
