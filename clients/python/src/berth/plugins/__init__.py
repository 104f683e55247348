"""Entry points of other programs. Each module needs its host: pip install berth[submitit], berth[torchx]."""
