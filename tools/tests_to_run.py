"""Says which tests of a build folder have to run. For tools/test.sh.

tests_to_run.py choose FOLDER [--unchanged] CTEST_OPTION...
    prints two regular expressions, of the tests that run first (labels `alone` and `sleeps`) and of all others, and the
    number of tests that are left out with --unchanged: they have passed with the same programs, scripts and data
tests_to_run.py passed FOLDER FILE...
    remembers the tests that have passed, from what ctest --output-junit has written
"""
import functools
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

import test_results

source = pathlib.Path(__file__).resolve().parent.parent
build = pathlib.Path(sys.argv[2]).resolve()
PASSED, CHOSEN = build / 'passed_tests.json', build / 'chosen_tests.json'
# A text in a program or a command that names a file or folder of this checkout, or beside it.
PLACE = re.compile(re.escape(os.fsencode(source)) + rb'(?:/[\w.+/-]*)?')


def load(file):
    try:
        return json.loads(file.read_text())
    except (OSError, ValueError):
        return {}


def hash_of(parts):
    return hashlib.sha256('\n'.join(sorted(map(str, parts))).encode()).hexdigest()


@functools.lru_cache(maxsize=None)
def bytes_of(file):
    return pathlib.Path(file).read_bytes()


@functools.lru_cache(maxsize=None)
def hash_of_file(file):
    return hashlib.sha256(bytes_of(file)).hexdigest()


@functools.lru_cache(maxsize=None)
def files_of_checkout():
    try:
        listed = subprocess.run(['git', '-C', source, 'ls-files', '-coz', '--exclude-standard'], check=True,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        return [source / os.fsdecode(name) for name in listed.split(b'\0') if name]
    except (OSError, subprocess.CalledProcessError):  # not a clone
        return [file for file in source.rglob('*') if not file.relative_to(source).parts[0].startswith('build')]


@functools.lru_cache(maxsize=None)
def programs():
    """Returns the hashes of all programs and shared objects of the build, but not of what tests have built."""
    made = subprocess.run(['ninja', '-C', build, '-t', 'targets', 'all'], check=True, stdout=subprocess.PIPE, text=True)
    names = re.findall(r'^(\S+): (?!phony)', made.stdout, re.M)
    files = [build / name for name in names]
    return {file: hash_of_file(file) for file in files if file.is_file() and bytes_of(file)[:4] == b'\x7fELF'}


@functools.lru_cache(maxsize=None)
def hash_of_folder(folder):
    """Returns the hash of a folder that a test may read. Of the build, only programs count; outside of the checkout,
    sizes and times."""
    if folder == build or build in folder.parents:
        return hash_of(programs().items()) if folder == build else ''
    if folder == source or source in folder.parents:
        inside = [file for file in files_of_checkout() if folder in file.parents and file.is_file()]
        return hash_of((file, hash_of_file(file)) for file in inside) + (
            hash_of(programs().items()) if folder == source else '')
    found = [file for file in folder.rglob('*') if file.is_file()]
    return hash_of((file, file.stat().st_size, file.stat().st_mtime_ns) for file in found)


@functools.lru_cache(maxsize=None)
def places_in(file):
    return {os.path.normpath(os.fsdecode(place)) for place in PLACE.findall(bytes_of(file))}


def key_of(test):
    """Returns a hash of everything on which the result of a test depends: its command, and the files that are named
    there or in its programs."""
    said = json.dumps([test['command'], [p for p in test['properties'] if p['name'] == 'ENVIRONMENT']])
    # A program may load any shared object of the build.
    shared = {(file, text) for file, text in programs().items() if '.so' in file.name}
    todo = {os.path.normpath(os.fsdecode(place)) for place in PLACE.findall(said.encode())}
    seen = {}
    while todo:
        place = pathlib.Path(todo.pop())
        if place in seen:
            continue
        seen[place] = ''
        if place.is_dir():
            seen[place] = hash_of_folder(place)
        elif place.is_file() and (build not in place.parents or place in programs()):
            seen[place] = hash_of_file(place)
            if place in programs():
                todo |= places_in(place)
    return hash_of([said, *shared, *seen.items()])


def choose(options):
    only_changed = '--unchanged' in options
    # ctest adds what the chosen tests need (-FA: not here).
    shown = subprocess.run(['ctest', *(o for o in options if o != '--unchanged'), '-FA', '.*', '--show-only=json-v1'],
                           check=True, stdout=subprocess.PIPE)
    tests = json.loads(shown.stdout)['tests']
    keys = {test['name']: key_of(test) for test in tests if 'command' in test} if only_changed else {}
    CHOSEN.write_text(json.dumps(keys))
    passed = load(PASSED)
    first, others, unchanged = [], [], 0
    for test in tests:
        properties = {p['name']: p['value'] for p in test['properties']}
        if only_changed and test['name'] in keys and passed.get(test['name']) == keys[test['name']]:
            unchanged += 1
        elif {'alone', 'sleeps'} & set(properties.get('LABELS', [])):
            first.append(test['name'])
        else:
            others.append(test['name'])
    for names in first, others:
        print('^(' + '|'.join(names) + ')$' if names else '')
    print(unchanged)


def remember(files):
    keys, passed = load(CHOSEN), load(PASSED)
    for file in files:
        for name, status, _ in test_results.read(file):
            passed.pop(name, None)
            if status == 'run' and name in keys:
                passed[name] = keys[name]
    PASSED.write_text(json.dumps(passed))


if sys.argv[1] == 'choose':
    choose(sys.argv[3:])
else:
    remember(sys.argv[3:])
