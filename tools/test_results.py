"""Reads the results that ctest --output-junit has written. For tools/test.sh.

test_results.py failures FOLDER FILE   prints for each failed test its assertions and the command that repeats it in
                                       the build folder
test_results.py disturbed FOLDER FILE  prints a regular expression of the failed tests that other programs may have
                                       disturbed (label `recorded`), if these are the only ones that failed
test_results.py sums FILE...           prints why tests were skipped, then `N passed, N failed, N skipped`. What
                                       FILE.again has is the result of a test
"""
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as xml

MOST_ASSERTIONS, LAST_LINES = 3, 12


def read(file):
    """Returns (name, status, output) of each test. Characters that XML forbids are removed. A program that is
    not there is a failed test."""
    with open(file, encoding='utf-8', errors='replace') as text:
        suite = xml.fromstring(re.sub('[\x00-\x08\x0b\x0c\x0e-\x1f]', '', text.read()))
    for case in suite.iter('testcase'):
        status = case.get('status')
        message = case.find('failure')
        output = case.findtext('system-out') or ''
        if message is not None and message.get('message'):
            output += '\n' + message.get('message')
        if case.find('skipped') is not None and output.startswith('Unable to find executable'):
            status = 'fail'
        yield case.get('name'), status, output


def assertions(output):
    """Returns what Catch2 prints of failed assertions, each with its test case; otherwise the last lines."""
    found, lines, case = [], output.split('\n'), ''
    for number, line in enumerate(lines):
        if line.startswith('-----') and number + 2 < len(lines) and lines[number + 2].startswith('-----'):
            case = lines[number + 1]
        if line.endswith(': FAILED:'):
            end = next((n for n in range(number, len(lines)) if not lines[n].strip()), len(lines))
            found += [f'in the case "{case}"', *lines[number:end]]
            if sum(text.endswith(': FAILED:') for text in found) == MOST_ASSERTIONS:
                break
    return found or [line for line in lines if line.strip()][-LAST_LINES:]


def failures(folder, file):
    for name, status, output in read(file):
        if status == 'fail':
            print(f'\nFAILED {name}')
            for line in assertions(output):
                print(f'  {line}')
            print(f"  again: ctest --test-dir {folder} -R '^{name}$' --output-on-failure")


def disturbed(folder, file):
    listed = subprocess.run(['ctest', '--test-dir', folder, '-L', '^recorded$', '-FA', '.*', '--show-only=json-v1'],
                            check=True, stdout=subprocess.PIPE)
    recorded = {test['name'] for test in json.loads(listed.stdout)['tests']}
    failed = [name for name, status, _ in read(file) if status == 'fail']
    if failed and set(failed) <= recorded:
        print('^(' + '|'.join(failed) + ')$')


def complete(file, otherwise):
    """Returns what read() yields; `otherwise` if ctest has not run or not come to an end."""
    try:
        return list(read(file))
    except (OSError, xml.ParseError):
        return otherwise


def sums(files):
    passed = failed = 0
    reasons = {}
    for file in files:
        again = {test[0]: test for test in complete(file + '.again', [])}
        second = [name for name, status, _ in again.values() if status == 'run']
        if second:
            print(f'passed only alone, the second time: {", ".join(second)}')
        for test in complete(file, [('', 'fail', '')]):
            name, status, output = again.get(test[0], test)
            passed += status == 'run'
            failed += status == 'fail'
            if status not in ('run', 'fail'):
                why = re.findall(r'skipped: (.+)|(Failed test dependencies: .+)', output)
                reasons.setdefault(''.join(why[0]).strip() if why else 'disabled in this build', []).append(name)
    for why, names in sorted(reasons.items()):
        print(f'skipped: {", ".join(sorted(set(names)))} ({why})')
    print(f'{passed} passed, {failed} failed, {sum(map(len, reasons.values()))} skipped')
    return failed


if __name__ == '__main__':
    if sys.argv[1] == 'failures':
        failures(*sys.argv[2:])
    elif sys.argv[1] == 'disturbed':
        disturbed(*sys.argv[2:])
    else:
        sys.exit(1 if sums(sys.argv[2:]) else 0)
