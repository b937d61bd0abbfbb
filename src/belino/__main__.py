"""python -m belino."""

import sys

from belino.cli import main

if __name__ == "__main__":
    sys.exit(main())
