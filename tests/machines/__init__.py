"""Machines for tests that this one cannot be: User-mode Linux (uml.py) and QEMU (vm.py)."""
