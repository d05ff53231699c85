"""Whether Onerank is as near to the measured runs as it was: a baseline of each source's mean error."""
import json
import pathlib

from .errors import mean_errors

BASELINE = pathlib.Path(__file__).resolve().parents[2] / "data" / "accuracy-baseline.json"
SLACK = 0.003  # of the measured value: a mean may get worse by so much
EVERY = {"memory": 1, "time": 10}  # one of so many rows of each source


def worse(found, baseline):
    """What a reader must know: sources whose mean error got worse, or that lost rows."""
    complaints = []
    for name, before in baseline.items():
        now = found.get(name, {"rows": 0, "mean": None})
        if now["rows"] < before["rows"]:
            complaints.append(f"{name}: {now['rows']} rows, {before['rows']} in the baseline")
        elif now["mean"] > before["mean"] + SLACK:
            complaints.append(f"{name}: mean error {now['mean']:.2%}, {before['mean']:.2%} in the baseline")
    return complaints


def check(subject, readings):
    """The complaints about readings of a subject, against the baseline file."""
    return worse(mean_errors(readings), json.loads(BASELINE.read_text())[subject])


def update(subject, readings):
    """Makes the readings the baseline of their subject."""
    baselines = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    baselines[subject] = mean_errors(readings)
    BASELINE.write_text(json.dumps(baselines, indent=1, sort_keys=True) + "\n")
