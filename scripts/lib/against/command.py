"""What the scripts against-... share: their options, and the loop over configurations."""
import pathlib
import sys

from .compare import compare
from .report import Row
from .runs import RunFailed

SCRIPTS = pathlib.Path(__file__).resolve().parents[2]
WITHIN, LACKS, DIFFERS, INTERRUPTED = 0, 3, 4, 130


def natural(text):
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def add_options(parser, families, output):
    parser.add_argument("--python", type=pathlib.Path, metavar="PROGRAM",
                        default=SCRIPTS.parent / ".venv/bin/python",
                        help="that runs it (default: .venv/bin/python)")
    parser.add_argument("--build", type=pathlib.Path, metavar="DIR",
                        default=SCRIPTS.parent / "build", help="folder of onerank")
    parser.add_argument("--seed", default="1", metavar="WORD", help="of the draw (default: 1)")
    parser.add_argument("--count", type=natural, default=10, metavar="N",
                        help="configurations of each family (default: 10)")
    parser.add_argument("--family", action="append", choices=families,
                        help="may be repeated (default: all)")
    parser.add_argument("--only", metavar="NAME", action="append",
                        help=f"run this configuration of the draw alone, as {families[0]}-3; may be "
                             "repeated")
    parser.add_argument("--output", type=pathlib.Path, default=output, metavar="DIR",
                        help=f"for profiles, logs and report.json (default: {output})")
    parser.add_argument("--timeout", type=natural, default=600, metavar="SECONDS",
                        help="for one run of the program (default: 600)")
    parser.add_argument("--list", action="store_true", help="print the configurations, run none")


def chosen(options, configurations):
    return [c for c in configurations if not options.only or c.name in options.only]


def print_list(configurations):
    for configuration in configurations:
        print(f"{configuration.name}: {configuration.world_size} ranks, rank "
              f"{configuration.rank}: {' '.join(configuration.words)}")
    return WITHIN


def lacks(what, way_out):
    print(f"error: {what}\n  help: {way_out}", file=sys.stderr)
    return LACKS


def _row(machine, configuration, folder):
    folder.mkdir(parents=True, exist_ok=True)
    try:
        shard = machine.shard(configuration, folder)
        program = machine.program(configuration, folder)
        step_seconds = machine.step_seconds(configuration, folder)
    except RunFailed as failure:
        return Row(configuration, failure=str(failure))
    return Row(configuration, compare(shard, program, step_seconds))


def run_all(options, machine, configurations, judge):
    """Runs, prints and judges the configurations. Returns the exit code."""
    output, rows = options.output.resolve(), []
    for configuration in configurations:
        rows.append(_row(machine, configuration, output / configuration.name))
        print(judge.details(rows[-1]) + "\n", flush=True)
        (output / "report.json").write_text(judge.document(rows, options.seed) + "\n")
    print(judge.table(rows))
    if not any(row.comparison for row in rows):
        return lacks("no configuration could be compared", f"see the logs in {output}")
    found = judge.breaches(rows)
    for breach in found:
        print(f"beyond the bounds: {breach}")
    return DIFFERS if found else WITHIN
