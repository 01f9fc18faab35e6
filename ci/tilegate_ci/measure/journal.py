"""The processes of a gate run, a file each, so that an interruption loses none that ended."""

from collections.abc import Mapping
from pathlib import Path

from tilegate_ci.core import documents
from tilegate_ci.core.files import GateError, dumps, make_folder, read_json, write_text
from tilegate_ci.model import Process


class Journal:
    def __init__(
        self, folder: Path, protocol: Mapping[str, object], model: type[Process] = Process
    ) -> None:
        """GateError where the folder holds processes of another run."""
        self.folder, self.model = folder, model
        path = folder / "protocol.json"
        if path.exists():
            old = read_json(path)
            for key in sorted({*old, *protocol}):
                if old.get(key) != protocol.get(key):
                    raise GateError(
                        f"{path}: {key} is {old.get(key)!r} there, {protocol.get(key)!r} now; "
                        "give another --out"
                    )
        else:
            make_folder(folder)
            write_text(path, dumps(dict(protocol)) + "\n")

    def path(self, key: str) -> Path:
        return self.folder / f"process-{key}.json"

    def count(self) -> int:
        return len(list(self.folder.glob("process-*.json")))

    def load(self, key: str) -> Process | None:
        path = self.path(key)
        if not path.exists():
            return None
        return documents.load(self.model, path).model_copy(update={"source": str(path)})

    def save(self, key: str, process: Process) -> Process:
        write_text(self.path(key), documents.to_text(process))
        return process.model_copy(update={"source": str(self.path(key))})
