#!/usr/bin/env python3
"""A short choice of ha_faults.py."""
import pathlib
import subprocess
import sys

from ha_world import skip_without_etcd

skip_without_etcd()
sys.exit(subprocess.run([sys.executable, pathlib.Path(__file__).with_name("ha_faults.py"), "--faults", "25"]).returncode)
