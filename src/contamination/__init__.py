"""Was this model trained on this benchmark? Methods, papers and controls."""

import warnings

__version__ = "0.1.0"

# tqdm asks for Jupyter widgets; its plain text bar is what executed notebooks need.
warnings.filterwarnings("ignore", message="IProgress not found")
