"""Whether something can be written into a folder that needn't be there yet."""

import os
from pathlib import Path

from flame.config.errors import ConfigError


def there(folder: Path) -> Path:
    """The folder, or the nearest above it that is there."""
    return next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists())


def closed(folder: Path, option: str) -> ConfigError | None:
    """Why nothing could be written into it; None where it can. option: the one that gave it. Makes nothing."""
    place = there(folder)
    if not place.is_dir():
        return ConfigError(f"`{option} {folder}`: `{place.name}` is no folder", "give a folder, or a name that isn't taken")
    if not os.access(place, os.W_OK | os.X_OK):
        return ConfigError(f"`{option} {folder}`: nothing can be written in `{place}`", "give a folder of your own")
    return None
