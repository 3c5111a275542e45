"""The API's first lines: a path, because it runs without site."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from ramherd.api.main import main

main()
