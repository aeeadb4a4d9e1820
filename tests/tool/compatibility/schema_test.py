"""Tests that every JSON output is valid according to its schema: schema_test.py LOTUS_TOOL ENGINES FOLDER

Other tests, which ran before with LOTUS_TEST_JSON_TO, have stored in FOLDER the JSON that the tool printed
for their runs: empty ones, or with one batch, several epochs, counted calls, stages, memory, ...
"""
import json
import os
import subprocess
import sys

from python_packages import package

TOOL, ENGINES, FOLDER = sys.argv[1:]
jsonschema = package(ENGINES, "jsonschema")
COMMANDS = ["stats", "diagnose", "whatif", "tune", "compare", "accelerator", "threads", "map run", "map build", "map join", "map attribute"]


def tool(*arguments):
    return subprocess.run([TOOL, *arguments], capture_output=True, text=True)


def undocumented(schema, root, place=""):
    """Returns the places in a schema where a key has no description, or an object allows unlisted keys."""
    if isinstance(schema, list):
        for i, part in enumerate(schema):
            yield from undocumented(part, root, f"{place}/{i}")
        return
    if not isinstance(schema, dict):
        return
    for key, value in schema.get("properties", {}).items():
        named = value
        if "$ref" in value and "description" not in value:
            named = root["$defs"][value["$ref"].rsplit("/", 1)[1]]
        if not named.get("description"):
            yield f"{place}/{key}"
    if "properties" in schema and schema.get("additionalProperties") is not False:
        yield place + ": additionalProperties"
    for key, value in schema.items():
        if key == "properties" or key == "$defs":
            for name, part in value.items():
                yield from undocumented(part, root, f"{place}/{name}")
        else:
            yield from undocumented(value, root, f"{place}/{key}")


def main():
    faults, validators, seen = [], {}, dict.fromkeys(COMMANDS, 0)
    for command in COMMANDS:
        printed = tool("schema", *command.split())
        schema = json.loads(printed.stdout)
        jsonschema.Draft202012Validator.check_schema(schema)
        faults += [f"schema of {command}: not described: {place}" for place in undocumented(schema, schema)]
        validators[command] = jsonschema.Draft202012Validator(schema)
    wrong = tool("schema", "viz")
    if wrong.returncode != 2 or "stats, diagnose" not in wrong.stderr:
        faults.append(f"schema viz: {wrong.returncode} {wrong.stderr}")

    for name in sorted(os.listdir(FOLDER)):
        command = name.split(".")[0]
        with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
            document = json.load(file)
        seen[command] = seen.get(command, 0) + 1
        error = jsonschema.exceptions.best_match(validators[command].iter_errors(document))
        if error:
            where = "/".join(map(str, error.absolute_path))
            faults.append(f"{command}: {where}: {error.message[:300]}")
    print(seen)
    # Commands of map need a profiler or a special build, and another test checks traces of
    # accelerators.
    faults += [f"{c}: no output was seen" for c in COMMANDS if seen[c] == 0 and not c.startswith(("map", "accelerator"))]
    for fault in sorted(set(faults))[:40]:
        print(fault)
    return 1 if faults else 0


sys.exit(main())
