"""Where PSI/J looks for executors."""
from packaging.version import Version
from psij.descriptor import Descriptor

__PSI_J_EXECUTORS__ = [Descriptor(name="berth", nice_name="Berth", version=Version("0.1.0"), cls="berth.plugins.psij.BerthExecutor")]
