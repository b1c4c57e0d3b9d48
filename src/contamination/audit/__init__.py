"""One's own model and data: settings, plan with its cost, checks, and what each method says."""

# Benchmarks by their names: hub id with configuration, split with public rows, column of the text.
BENCHMARKS = {
    "GSM8K": ("openai/gsm8k:main", "test", "question"),
    "MMLU": ("cais/mmlu:all", "test", "question"),
    "HumanEval": ("openai/openai_humaneval", "test", "prompt"),
    "ARC": ("allenai/ai2_arc:ARC-Challenge", "test", "question"),
    "TruthfulQA": ("truthfulqa/truthful_qa:generation", "validation", "question"),
    "HellaSwag": ("Rowan/hellaswag", "validation", "ctx"),
}
# The setting that an option fills; all other options say what is done with the audit.
FILLS = {
    "model": "model.names",
    "log-probs": "model.log_probs",
    "device": "model.device",
    "served-at": "model.base_url",
    "key": "model.key_variable",
    "prices": "model.prices",
    "price-date": "model.price_date",
    "cap": "model.cost_cap",
    "data": "data.dataset",
    "split": "data.split",
    "text": "data.text_columns",
    "label": "data.label_column",
    "columns": "data.column_names",
    "names": "data.names",
    "unseen": "comparison",
    "methods": "methods",
    "rows": "n_instances",
    "passages": "n_passages",
    "completion-tokens": "replication.completion_tokens",
    "power": "power",
}
