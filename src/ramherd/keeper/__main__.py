"""The keeper's first lines: a path, because it runs without site, and what the rest is.

Short, because Python compiles the file that it is given each time: for the keeper itself that
took 1 MB of the memory that it then lives with.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from ramherd.keeper.keeper import main

main()
