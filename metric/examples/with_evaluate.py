"""Score two candidates through `evaluate`, after `bleurt-repro register`."""

import evaluate

bleurt = evaluate.load("bleurt_repro")
results = bleurt.compute(
    predictions=["A cat was sitting on the mat.", "Stock prices fell sharply on Monday."],
    references=["The cat sat on the mat.", "The cat sat on the mat."],
)
for name, value in results.items():
    print(f"{name}: {value}")  # noqa: T201
