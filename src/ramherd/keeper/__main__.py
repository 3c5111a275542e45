"""Starts the keeper: sets the import path, because Python runs without site, and calls the keeper.

This file is short because Python compiles its main file at each start: for the keeper's own file
that took 1 MB, which the process then kept.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from ramherd.keeper.keeper import main

main()
