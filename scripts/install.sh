#!/usr/bin/env bash
# Install torch and a lock into a folder, each file by its hash; make setup calls it.
#
#     PYTHON=python3.13 TORCH=cpu scripts/install.sh .venv requirements.txt [flags of pip]
#
# TORCH is cpu, cuda or empty: then a torch of the locked version stays, and otherwise the build
# without CUDA is taken where a package index in use serves it. What is there already is not
# fetched again, so an interrupted run is simply repeated.
set -euo pipefail
folder=$1 lock=$2 torch=${TORCH:-}
shift 2
case $torch in '' | cpu | cuda) ;; *) echo "error: TORCH is cpu or cuda, not $torch" >&2 && exit 1 ;; esac
export PIP_DISABLE_PIP_VERSION_CHECK=1
python=$folder/bin/python
if ! "$python" -m pip --version > /dev/null 2>&1; then
  if [ -z "${PYTHON:-}" ]; then
    echo 'error: no Python from 3.11.5 to 3.13 is found: install one, or name it with make PYTHON=/path/to/python3.13' >&2
    exit 1
  fi
  "$PYTHON" -m venv "$folder"
fi
install() { "$python" -m pip install --quiet --no-deps --require-hashes "${flags[@]}" "$@"; }
flags=("$@" --no-build-isolation)

# First what builds the packages that are served as source.
echo "installing $lock into $folder (minutes)"
sed -n '/^setuptools==/,/[^\\]$/p' requirements.txt > "$folder/setuptools.txt"
install -r "$folder/setuptools.txt"
version=$(sed -n 's/^torch==\([0-9.]*\).*/\1/p' requirements/torch-cuda.txt)
if [ "$torch" = cuda ]; then
  install -r requirements/torch-cuda.txt
elif [ "$torch" = cpu ] || ! "$python" -m pip show torch 2> /dev/null | grep "^Version: $version" > /dev/null; then
  if ! install -r requirements/torch-cpu.txt; then
    [ -z "$torch" ] || exit 1
    echo 'taking torch with CUDA instead, several GB (docs/install.md says how to do without)'
    install -r requirements/torch-cuda.txt
  fi
fi
install -r "$lock"
"$python" -m pip check --quiet
