"""The version, in the one place that the build, the command line and the User-Agent read. Nothing else lives here."""

VERSION = "0.1.0"
