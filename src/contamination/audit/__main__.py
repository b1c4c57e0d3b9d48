"""``python -m contamination.audit``."""

import sys

from contamination.audit.command_line import main

sys.exit(main())
