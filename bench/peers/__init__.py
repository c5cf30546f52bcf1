"""The peers: the libraries that people use today. The makers' own clients (`vendors`), and those for many providers
(`frameworks`).

Each `build` imports its library when it is called, since it runs only in that library's environment.
"""

from __future__ import annotations

from bench.peers.frameworks import FRAMEWORKS
from bench.peers.vendors import VENDOR_OF, VENDORS

PEERS = (*VENDORS, *FRAMEWORKS)

__all__ = ["FRAMEWORKS", "PEERS", "VENDORS", "VENDOR_OF"]
