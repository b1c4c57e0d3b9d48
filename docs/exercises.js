// Exercises written and checked in a page: cells tagged in_browser, in plain Python (Pyodide).
// One file for both sides: the page, and the worker that runs Python and can be stopped.

const LIMIT_SECONDS = 20;
const TO_WRITE = `You can write on this page: “Check” runs plain Python in your browser, without NumPy.
  It is fetched from this site when you first ask (12 MB: Pyodide, MPL-2.0). What you type stays here.`;
const FROM_DISK = `Opened from a disk, this page cannot run Python: browsers refuse. Write in JupyterLab,
  or serve the site's folder (python -m http.server) and open the page from there.`;
const NO_PYTHON = `Python did not start: this copy of the site may lack it. Build the site again with a
  network and npm (make site), or write in JupyterLab.`;
const TOO_LONG = `Stopped after ${LIMIT_SECONDS} seconds. Does a loop never end?`;

const SETUP = `
import contextlib, io, traceback

def run(above, cells):
    """What cells print or raise, after those above, whose failures are shown at their own."""
    names = {}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            exec("import random, re; from contamination.teaching.exercises import grade", names)
            for cell in above:
                with contextlib.redirect_stdout(None), contextlib.suppress(Exception):
                    exec(cell, names)
            for place, cell in zip(["your lines", "the cell below them"], cells):
                exec(compile(cell, place, "exec"), names)
        except BaseException as error:
            inside = error.__traceback__.tb_next
            traceback.print_exception(type(error), error, inside, file=printed)
    return printed.getvalue()[:20_000]

run`;

if (self.document) write();
else answer();

async function startPython() {
  importScripts("pyodide/pyodide.js");
  const python = await loadPyodide({ indexURL: "pyodide/" });
  python.FS.mkdirTree("contamination/teaching");
  for (const name of ["exercises.py", "exercises.json"]) {
    const file = await fetch(name);
    python.FS.writeFile(`contamination/teaching/${name}`, await file.text());
  }
  return python.runPython(SETUP);
}

function answer() {
  const starting = startPython().catch(() => null);
  self.onmessage = async ({ data }) => {
    const run = await starting;
    postMessage({ started: true });
    try {
      postMessage({ printed: run ? run(data.above, data.cells) : NO_PYTHON, failed: !run });
    } catch (error) {
      postMessage({ printed: `Python stopped: ${error}`, failed: true });
    }
  };
}

function write() {
  const address = document.currentScript.src;
  const cells = [...document.querySelectorAll(".cell.tag_in_browser")];
  const fromDisk = location.protocol === "file:";
  cells[0]?.before(made("p", { textContent: fromDisk ? FROM_DISK : TO_WRITE }));
  const editors = [];
  const buttons = [];
  let worker, stop;
  for (const cell of fromDisk ? [] : cells) {
    const source = cell.querySelector("pre").textContent;
    const name = source.match(/^def (\w+)/)?.[1];
    if (name) editors.push(editor(cell, name, source));
    else buttons.push(runner(cell, source, editors.at(-1), editors.slice(0, -1)));
  }

  function runner(cell, source, own, above) {
    const label = source.includes("grade(") ? "Check" : "Run";
    const button = made("button", { textContent: label, className: "btn btn-sm btn-primary" });
    const output = made("output");
    cell.append(button, output);
    button.onclick = () => {
      if (stop) return stop("Stopped.");
      let timer;
      const done = (words) => {
        clearTimeout(timer);
        stop = null;
        output.textContent = words;
        button.textContent = label;
        buttons.forEach((each) => (each.disabled = false));
      };
      stop = (words) => {
        worker.terminate();
        worker = null;
        done(words);
      };
      worker ??= new Worker(address);
      worker.onmessage = ({ data }) => {
        if (data.failed) stop(data.printed);
        else if ("printed" in data) done(data.printed);
        else {
          output.textContent = "Running …";
          timer = setTimeout(() => stop(TOO_LONG), 1000 * LIMIT_SECONDS);
        }
      };
      worker.postMessage({ above: above.map((each) => each.value), cells: [own.value, source] });
      output.textContent = "Starting Python …";
      button.textContent = "Stop";
      buttons.forEach((each) => (each.disabled = each !== button));
    };
    return button;
  }
}

function editor(cell, name, source) {
  let kept = {};
  try {
    kept = localStorage;
  } catch {} // a browser that keeps nothing
  const key = `${location.pathname} ${name}`;
  const box = made("textarea", { id: `write-${name}`, value: kept[key] || source, spellcheck: false });
  box.rows = source.split("\n").length + 3;
  box.autocapitalize = "off";
  box.oninput = () => (kept[key] = box.value);
  box.onkeydown = (event) => {
    if (event.key !== "Enter" || event.isComposing) return;
    event.preventDefault(); // a new line begins where the one before did, or deeper
    const line = box.value.slice(0, box.selectionStart).split("\n").at(-1);
    const deeper = line.trimEnd().endsWith(":") ? "    " : "";
    document.execCommand("insertText", false, `\n${line.match(/^ */)[0]}${deeper}`);
  };
  cell.replaceChildren(made("label", { htmlFor: box.id, textContent: `Your ${name}` }), box);
  return box;
}

function made(kind, properties) {
  return Object.assign(document.createElement(kind), properties);
}
