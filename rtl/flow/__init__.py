"""The open tool flow of rtl/: simulate, prove, lint and corrupt, with tools from PyPI."""
