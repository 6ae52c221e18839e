"""The plain training loop, against which every engine is tested. Imports ``probes``."""
