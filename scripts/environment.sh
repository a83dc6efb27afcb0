# Sourced by scripts/test, demo and bench: makes .venv in the repository, with the project installed for development.
# Needs python3 with pip, nothing else. Quiet, and does nothing when .venv already fits setup.cfg.

root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd -P)
cd "$root"
python=$root/.venv/bin/python
unset PYTHONPATH PYTHONHOME

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

fail() {
    say "$*"
    exit 1
}

# What .venv was made from: when any of it changes, it is brought up to date.
fingerprint() {
    { pwd -P; python3 -V; cat setup.cfg pyproject.toml; } | sha256sum
}

# python3 -m venv needs Debian's python3-venv; pip alone can fetch virtualenv, and --target keeps it out of the system.
make_venv() {
    rm -rf .venv
    if python3 -c 'import ensurepip, venv' 2>/dev/null; then
        python3 -m venv .venv
    else
        python3 -m pip --version >/dev/null 2>&1 || fail "python3 has no pip (Debian: apt-get install python3-pip)"
        python3 -m pip install -qq --disable-pip-version-check --upgrade --target .cache/virtualenv virtualenv
        PYTHONPATH=.cache/virtualenv python3 -m virtualenv --quiet .venv
    fi
}

# Installing a service on Debian starts it. Run level 1 is the one in which none is to be started.
apt_install() {
    export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
    apt-get install -qq -y --no-install-recommends "$@" >/dev/null 2>&1 ||
        { apt-get update -qq >/dev/null && apt-get install -qq -y --no-install-recommends "$@" >/dev/null; }
}

may_install() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

# Without Python.h the hot loops stay plain Python: right, but slow.
want_headers() {
    header=$(python3 -c 'import sysconfig; print(sysconfig.get_path("include") + "/Python.h")')
    [ -e "$header" ] && return
    [ "$(command -v python3)" = /usr/bin/python3 ] && may_install && apt_install python3-dev && return
    say "$header is missing (Debian: apt-get install python3-dev): the hot loops stay plain Python"
}

# All packages of setup.cfg, and what builds it, one a line.
requirements() {
    "$python" -c '
from configparser import RawConfigParser
file = RawConfigParser()
file.read("setup.cfg")
print("setuptools>=69", file["options"]["install_requires"], file["options.extras_require"]["test"], sep="\n")'
}

make_environment() {
    command -v python3 >/dev/null || fail "python3 is missing"
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail "python3 is older than 3.11"
    mkdir -p .cache
    print=$(fingerprint)
    if [ ! -x "$python" ] || [ "$(cat .venv/fingerprint 2>/dev/null)" != "$print" ]; then
        say "making .venv; this takes some minutes, most of them to compile"
        want_headers
        [ -x "$python" ] && "$python" -c '' 2>/dev/null || make_venv
        pip="$python -m pip install -qq --disable-pip-version-check"
        # What is not to be had is to be known before minutes of compiling; and scripts/build compiles on two cores, so
        # that pip then finds everything compiled.
        requirements >.cache/requirements.txt
        $pip -r .cache/requirements.txt
        "$python" scripts/build
        $pip --no-build-isolation --editable '.[test]'
        echo "$print" >.venv/fingerprint
    else
        "$python" scripts/build
    fi
}
