"""Tests that report --bundle packs what a bug report needs, and no secrets: bundle_test.py LOTUS_TOOL ENGINES SAMPLES"""
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile

TOOL, _, SAMPLES = sys.argv[1:4]


def bundle(folder, *options):
    """Creates a bundle. Returns its files, its bytes and the messages."""
    file = folder.rstrip("/") + ".tar.gz"
    made = subprocess.run([TOOL, "report", folder, "--bundle", file, *options], capture_output=True, text=True)
    assert made.returncode == 0, made
    with tarfile.open(file) as archive:
        found = {}
        for member in archive.getmembers():
            assert member.isfile() and member.name.startswith("lotus-bundle/") and member.mtime == 0, member
            found[member.name.split("/", 1)[1]] = archive.extractfile(member).read().decode()
    with open(file, "rb") as packed:
        return found, packed.read(), made.stderr


def has(found, text):
    return [name for name, content in found.items() if text in content or text in name]


def write_run(folder):
    """Writes the sample run, with secrets in all places where a program could have some."""
    shutil.copytree(SAMPLES + "/0.1/text", folder)
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        with open(path) as file:
            text = file.read()
        if name.startswith(".lotus_info"):
            text = text.replace("command S./recorder text text", "command S./train --token%2C TOPSECRET1")
            text = text.replace("host Shere", "host STOPSECRET2") + "unknown STOPSECRET3\n"
            text = text.replace(" Srecorder", " Sthread_name")
        text = text.replace("Sfile=0", "STOPSECRET4").replace("SRead,", "SRead%2Cit,")
        with open(path, "w") as file:
            file.write(text)
    with open(folder + "/TOPSECRET5.txt", "w") as file:
        file.write("TOPSECRET5")
    os.symlink("/etc/passwd", folder + "/.lotus_info_7_7")
    os.mkdir(folder + "/validation")
    with open(folder + "/validation/lotustrace_log_worker_pid_4", "w") as log:
        log.write("SLoad,1795602930723520048,1000\nno line at all\n")


def main():
    with tempfile.TemporaryDirectory() as place:
        folder = place + "/TOPSECRET6"
        write_run(folder)
        found, _, told = bundle(folder)
        assert {"README.txt", "versions.txt", "files.txt", "stats.txt", "diagnose.txt", "info/1.txt",
                "logs/1.txt"} <= set(found), sorted(found)
        assert not has(found, "TOPSECRET") and not has(found, place) and not has(found, "root:"), (
            has(found, "TOPSECRET"), has(found, place))
        assert "--hide-names" in told
        assert "lotus-tool " in found["versions.txt"] and os.uname().nodename not in found["versions.txt"].split()
        assert "lotus 0.1.0\n" in found["info/1.txt"] and "\ncommand (removed, " in found["info/1.txt"]
        assert "\ncpus 2 -\n" in found["info/1.txt"] and "thread_name" in found["info/1.txt"]
        assert has(found, "\nSRead%2Cit,") and has(found, "SBatchPreprocessed_11,")
        assert "Read,it" in found["stats.txt"] and "exit status 0" in found["stats.txt"]
        assert "RUN" in found["stats.txt"] and "1 other files" in found["files.txt"], found["files.txt"]
        assert has(found, "(malformed) no line at all")
        assert has(found, " more lines\n")

        # Names must be replaced, equal ones by the same replacement.
        hidden, packed, told = bundle(folder, "--hide-names")
        for name in ("Read", "Decode", "Token", "thread_name", "built", "validation", "no line", "TOPSECRET"):
            assert not has(hidden, name), (name, has(hidden, name))
        assert "SBatchPreprocessed_11," in "".join(hidden.values())
        assert bundle(folder, "--hide-names")[1] == packed

        # Packs compact logs, and a folder that no command can read.
        shutil.copytree(SAMPLES + "/0.1/compact", place + "/compact")
        found, _, _ = bundle(place + "/compact")
        assert has(found, "SDecode,") and has(found, "args,S(arguments"), sorted(found)
        assert not has(found, "Sfile=")
        os.mkdir(place + "/empty")
        found, _, _ = bundle(place + "/empty")
        assert "exit status 1" in found["stats.txt"] and found["logs/error.txt"], found
        wrong = subprocess.run([TOOL, "report", folder, "--bundle", "x", "-o", "y"], capture_output=True)
        assert wrong.returncode == 2, wrong
        gone = subprocess.run([TOOL, "report", place + "/none", "--bundle", place + "/x"], capture_output=True)
        assert gone.returncode == 1 and not os.path.exists(place + "/x"), gone
    return 0


sys.exit(main())
