"""What scripts/accuracy is made of: rows of published runs, their plans, and how far the estimate is off.

rows.py     reads rows (ground-truth.json says what a row is)
gate.py     whether the errors are as small as they were
plans.py    a row as a plan, or why it is not one
onerank.py  runs `onerank estimate` over many plans, `onerank comm` over many sizes
errors.py   predicted against measured: errors by source, as JSON and as tables

Beside these, one module for each subject: it has `NAME`, `HELP`, `UNIT`, `NOTES` for the end of the
report, and `compare(rows, onerank)`, which returns the readings and what was left out; where it has
more rows than ground-truth.json, `DATA`; where it has goals, `goals(readings)`.
"""
