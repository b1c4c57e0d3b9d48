"""Git's view of a notebook: what was written, without what a run or JupyterLab added.

`make lab` makes this the clean filter of `notebooks/` (.gitattributes), so that a
notebook that was run and saved is no change, and outputs are never committed.
Standard input to standard output; only the standard library, since git calls it often.
"""

import json
import sys

METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
# Of a cell: what it is for, and whether JupyterLab opens it folded.
KEPT = ("jupyter", "tags")


def clean(text: str) -> str:
    notebook = json.loads(text)
    notebook["metadata"] = METADATA
    for cell in notebook["cells"]:
        cell["metadata"] = {k: value for k, value in cell["metadata"].items() if k in KEPT}
        if "hide-output" in cell["metadata"].get("tags", []):  # which a run in JupyterLab undoes
            cell["metadata"]["jupyter"] = cell["metadata"].get("jupyter", {}) | {
                "outputs_hidden": True
            }
        if cell["cell_type"] == "code":
            cell |= {"execution_count": None, "outputs": []}
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


if __name__ == "__main__":
    sys.stdout.buffer.write(clean(sys.stdin.buffer.read().decode()).encode())
