"""What may be done with remote memory."""

from enum import IntFlag


class Permissions(IntFlag):
    """What a process may do with the bytes of a region."""

    NONE = 0
    READ = 1
    WRITE = 2
    READ_WRITE = 3
