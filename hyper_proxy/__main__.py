"""python -m hyper_proxy: the command `hyper-proxy`, where only the interpreter is at hand."""

from __future__ import annotations

import sys

from hyper_proxy.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
