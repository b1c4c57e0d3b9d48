"""What a bad disk does to a file, as several tests do it, and what must be said of it."""


def flip(path):
    """64 bytes in the middle of a file, or all of a smaller one, with every bit the other way."""
    data = bytearray(path.read_bytes())
    middle = max(0, len(data) // 2 - 32)
    data[middle : middle + 64] = bytes(255 - byte for byte in data[middle : middle + 64])
    path.write_bytes(data)


def cut(path):
    """The first half of a file, as a copy that was broken off leaves it."""
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


DAMAGES = (flip, cut)


def said_of(path):
    """A pattern of the one line that names what is damaged."""
    return rf"^[^\n]*{path.name} is damaged \(its checksum differs\)[^\n]*$"
