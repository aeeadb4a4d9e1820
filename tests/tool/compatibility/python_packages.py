"""Imports packages of PyPI for tests, from the folder of tools/engines.sh or from the system."""
import glob
import importlib
import sys


def package(folder, name):
    """Returns the package; if it is not installed, ends the test as skipped."""
    # This folder comes first, because the system may have other versions of the package's
    # dependencies.
    sys.path[1:1] = [p for p in glob.glob(folder + "/lib/python*/site-packages") if p not in sys.path]
    try:
        return importlib.import_module(name)
    except ImportError as error:
        print(f"skipped: no Python package {name} (tools/engines.sh fetches it): {error}")
        sys.exit(0)
