"""The conformance server of the Python SDK, on stdio. Run by the Python that has the SDK; the
argument is the directory of its example.
"""

import logging
import sys
from importlib import import_module

sys.path.insert(0, sys.argv[1])
logging.basicConfig(stream=sys.stderr)
import_module("mcp_everything_server.server").mcp.run(transport="stdio")
