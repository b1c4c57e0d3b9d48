"""Small logs of evaluations in the two formats that an audit reads, made from their documentation.

The harness: one line for each sample and filter. Inspect: one object for each task.
"""

import json

ASKED = [f"How many ships came into the harbour of town {k} on Monday?" for k in range(6)]
DATE = "2026-01-31T10-20-30.123456"


def harness_sample(k, passed, name="exact_match", **changed):
    """A line about question k, which was generated; ``changed`` are other fields than usual."""
    sent = {"arg_0": f"Question: {ASKED[k]}\nAnswer:", "arg_1": {"until": ["\n"]}}
    sample = {"doc_id": k, "doc": {"question": ASKED[k], "answer": f"{k} ships"}}
    sample |= {"target": f"{k} ships", "arguments": {"gen_args_0": sent}}
    sample |= {"resps": [[f" I count {k}."]], "filtered_resps": [str(k)], "filter": "none"}
    return sample | {"metrics": [name], name: passed} | changed


def write_lines(path, samples):
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text("".join(json.dumps(sample) + "\n" for sample in samples))
    return str(path)


def harness_log(folder, samples=None, has_results=True, task="harbour"):
    """The file of samples; next to it the results."""
    samples = samples or [harness_sample(k, float(k < 2)) for k in range(6)]
    path = folder / f"samples_{task}_{DATE}.jsonl"
    if has_results:
        told = {"exact_match,none": 1 / 3, "exact_match_stderr,none": 0.2}
        results = {"results": {task: {"alias": task} | told}}
        results |= {"configs": {task: {"test_split": "validation"}}, "model_name": "some/model"}
        results |= {"n-samples": {task: {"original": 6, "effective": 6}}}
        folder.mkdir(exist_ok=True, parents=True)
        (folder / f"results_{DATE}.json").write_text(json.dumps(results))
    return write_lines(path, samples)


def inspect_sample(k, value, epoch=1, scorer="match", **changed):
    """A sample of question k that the model answered; ``value`` is its score."""
    turns = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": ASKED[k]}]
    turns.append({"role": "assistant", "content": f"I count {k}."})
    output = {"model": "m", "choices": [{"message": turns[-1]}], "completion": f"I count {k}."}
    sample = {"id": k, "epoch": epoch, "input": ASKED[k], "target": f"{k} ships"}
    sample |= {"messages": turns, "output": output, "metadata": {"town": k}, "attachments": {}}
    return sample | {"scores": {scorer: {"value": value, "answer": str(k)}}} | changed


def inspect_log(folder, samples=None, status="success", name="harbour.json"):
    """The file of a task whose log states an accuracy of 1/3."""
    samples = samples if samples is not None else [inspect_sample(k, "CI"[k > 1]) for k in range(6)]
    metrics = {name: {"name": name, "value": value} for name, value in [("accuracy", 1 / 3)]}
    metrics["stderr"] = {"name": "stderr", "value": 0.2}
    usual = [{"name": "match", "scorer": "match", "scored_samples": 6, "metrics": metrics}]
    about = {"task": "tests/harbour", "model": "some/model", "dataset": {"samples": 6}}
    log = {"version": 2, "status": status, "eval": about, "samples": samples}
    log["results"] = {"total_samples": 6, "scores": usual}
    folder.mkdir(exist_ok=True, parents=True)
    (folder / name).write_text(json.dumps(log))
    return str(folder / name)
