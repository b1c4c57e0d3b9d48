"""The study of all detectors on models whose exposure is known.

One frame, ``scores.read_scores``, has what each detector said of each row under each model, next to
what the model saw of the row. Each question about it has a module:

* how often must a model see a row: ``detection``; when: ``placement``; how many rows does an
  auditor need, and how many can be named: ``power``
* what hides a row, and larger models: ``changes``; what fakes exposure: ``shift``, ``length``
* does DICE see exposure: ``dice_forks``; a real model: ``pretrained``, ``real_model``; in which
  form must it see a row: ``forms``
* how does a new detector do: ``yours``, from the tokens that ``tokens`` stores

The models and their rows are in ``row_pools``, the detectors in ``pretraining``, the exact tests in
``protocol``, intervals in ``crossed``, the reference attack in ``reference_attack``, the files in
``store``, and the check that models can be trained again in ``first_steps``.
"""
