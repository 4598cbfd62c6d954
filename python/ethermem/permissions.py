"""Permissions on remote memory."""

from enum import IntFlag


class Permissions(IntFlag):
    """Permissions of a process on the bytes of a region."""

    NONE = 0
    READ = 1
    WRITE = 2
    READ_WRITE = 3
