#!/usr/bin/env python3
"""Prints in how many recordings of the same program the verdict and the first predicted change are the same.

bench/same_verdict.py TOOL PROGRAM [CAUSE...] [--runs 20] [--seconds 0.7] [--burners 0] [--show]
Records PROGRAM (planted_causes) with each CAUSE, once after another so that all causes see the same load, and
asks TOOL (lotus-tool) about each recording. Without CAUSE, six of them. --burners starts processes that only
compute. --show prints all answers that differ from the most frequent one.
"""
import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile

SIX = ['unpickle', 'pass', 'lock', 'step-lock', 'cache', 'slow-worker']


def answer(tool, folder):
    """Returns the verdict, the first predicted change without its numbers, and the text of the first screen."""
    out = subprocess.run([tool, 'diagnose', folder, '--json', '-q'], capture_output=True, text=True, check=True)
    found = json.loads(out.stdout)
    screen = found['screen']
    if screen['advice']:
        first = re.sub(r'perhaps |[0-9.]+', '', screen['advice'][0]['change']).split(', ')[0]
    else:
        first = 'none'
    return found['verdict'] or 'none', ' '.join(first.split()), screen['headline'] + ' ' + screen['why']


def most_common(values):
    """Returns the most frequent value besides 'none', how often it is there, and how often 'none' is."""
    some = [value for value in values if value != 'none']
    value, count = collections.Counter(some or ['none']).most_common(1)[0]
    return value, count if some else 0, len(values) - len(some)


def main():
    asked = argparse.ArgumentParser(usage=__doc__)
    asked.add_argument('tool')
    asked.add_argument('program')
    asked.add_argument('causes', nargs='*', default=SIX)
    asked.add_argument('--runs', type=int, default=20)
    asked.add_argument('--seconds', default='0.7')
    asked.add_argument('--burners', type=int, default=0)
    asked.add_argument('--show', action='store_true')
    given = asked.parse_args()
    burners = [subprocess.Popen([sys.executable, '-c', 'while True: pass']) for _ in range(given.burners)]
    answers = {cause: [] for cause in given.causes}
    try:
        for _ in range(given.runs):
            for cause in given.causes:
                with tempfile.TemporaryDirectory() as folder:
                    to = dict(os.environ, LOTUS_LOG_FILE=os.path.join(folder, 'lotustrace_log'))
                    subprocess.run([given.program, cause, 'slow', given.seconds], env=to, check=True)
                    answers[cause].append(answer(given.tool, folder))
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()
    print('| program | verdict | the same | none | first prediction | the same | none |')
    print('|---|---|---|---|---|---|---|')
    for cause, all_answers in answers.items():
        verdict = most_common([of[0] for of in all_answers])
        first = most_common([of[1] for of in all_answers])
        print(f'| {cause} | {verdict[0]} | {verdict[1]} | {verdict[2]} | {first[0]} | {first[1]} | {first[2]} |')
        for of in all_answers if given.show else []:
            if of[0] != verdict[0] or of[1] != first[0]:
                print(f'  {of[0]}, {of[1]}: {of[2]}')


if __name__ == '__main__':
    main()
