"""Benchmarks that an audit knows by their names."""

# Hub id with configuration, split with public rows, column of the text.
BENCHMARKS = {
    "GSM8K": ("openai/gsm8k:main", "test", "question"),
    "MMLU": ("cais/mmlu:all", "test", "question"),
    "HumanEval": ("openai/openai_humaneval", "test", "prompt"),
    "ARC": ("allenai/ai2_arc:ARC-Challenge", "test", "question"),
    "TruthfulQA": ("truthfulqa/truthful_qa:generation", "validation", "question"),
    "HellaSwag": ("Rowan/hellaswag", "validation", "ctx"),
}
