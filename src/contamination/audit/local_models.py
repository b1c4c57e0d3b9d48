"""Local models, loaded as the block ``model`` of the settings says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from contamination.audit.rows import Rows
from contamination.audit.settings import CONTAMINATED, NATIVE, Data, Model, Settings
from contamination.dcq.contaminating import training_texts
from contamination.lab import world
from contamination.lab.grammar import BENCHMARKS, draw_instances
from contamination.lab.training import Dose, has_native_bfloat16
from contamination.models import local, source
from contamination.models.loading import device_named
from contamination.models.local import CausalLM
from contamination.replication.instructions import LABELLED_TASKS, cut_rows, document


def load_model(settings: Model, name: str | Path = "") -> CausalLM:
    """The first model, or another one in the same way."""
    name = str(name) or settings.first
    # With a map it is the map that places it.
    device = None if settings.device_map and not settings.device else device_named(settings.device)
    return local.load_causal_lm(
        name,
        settings.revision_of(name),
        dtype=arithmetic(settings),
        device=device,
        device_map=settings.device_map or None,
        safetensors_only=settings.safetensors_only,
        bos=source.parse_bos(settings.bos),
    )


def arithmetic(settings: Model) -> str:
    """``dtype`` with "native" as it is on the device."""
    if settings.dtype != NATIVE:
        return settings.dtype
    return "bfloat16" if has_native_bfloat16(device_named(settings.device)) else "float32"


# Of the continued training, as in notebook 02b.
LEARNING_RATE, BATCH_SIZE, N_TOKENS = 0.002, 2, 10_000
SAMPLE_BENCHMARK = "topics"  # of the sample, and of what the clean models read


def lab_folder(told: Settings, name: str, rows: Rows) -> Path:
    """Checkpoint of ``lab:contaminated`` or ``lab:clean``, trained or from the cache.

    The contaminated model reads the rows; a clean one as many rows of the lab's topics that are
    not among them, in the same forms and as often: "lab:clean:1" and so on read other ones.
    """
    made, data = world.build_world(told.world_seed), told.data
    base = world.base_model(made, told.n_background_tokens, told.world_seed)
    if name == CONTAMINATED:
        texts, seed = _read_texts(rows, data.task, data.called), 0
    else:
        number = name.rsplit(":", 1)[1]
        seed = int(number) if number.isdigit() else 0
        others = draw_instances(BENCHMARKS[SAMPLE_BENCHMARK], len(rows.rows), seed, "validation")
        others = Rows(others.reset_index(names="index"), ("text", "label"), ("label",))
        texts = _read_texts(others, Data().task, data.called)
    doses = [Dose(texts, told.copies)]
    return world.continued_model(
        made, base, doses, N_TOKENS, seed, LEARNING_RATE, batch_size=BATCH_SIZE
    )


def _read_texts(rows: Rows, task: str, names: Sequence[str]) -> tuple[str, ...]:
    """Rows under the names of dataset and split, in the two forms that the methods ask for."""
    texts = training_texts(rows.instances, *names)
    if task in LABELLED_TASKS and not rows.labels:
        return texts
    pieces = cut_rows(rows.rows, task, rows.texts, rows.label_column, seed=0)
    dataset, split = names
    read = [document(task, one, dataset=dataset, split=split) for one in pieces.to_dict("records")]
    return (*texts, *read)


def check_models(models: Sequence[str], revision: str = "") -> None:
    """FileNotFoundError if a named local model is not there; ``revision`` is the first model's."""
    for model in filter(None, models):
        source.check_model(model, revision if model == models[0] else "")
