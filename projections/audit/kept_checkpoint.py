"""A checkpoint that somebody kept outside of the database, found again in the stored log."""

from __future__ import annotations

from typing import Final

from projections.audit.chain import Link, LogDamaged
from projections.audit.checkpoint import Checkpoint, NoCheckpoint
from projections.audit.checkpoint_keys import PUBLIC_KEYS
from projections.audit.checkpoints import Checkpoints
from projections.audit.signed_note import NoteInvalid, PublicKey
from projections.audit.stored_log import StoredLog

_LINK: Final = "SELECT last_position, number, chain_hash FROM commits WHERE last_position <= %s ORDER BY last_position DESC LIMIT 1"
_END: Final = "SELECT coalesce(max(last_position), 0) FROM commits"


def last_note(text: str) -> str:
    """The last signed note of a file that may have several, one behind the other."""
    text = text.replace("\r\n", "\n")
    begin = text.rfind("\nmedialedger/") + 1
    return f"{text[begin:].rstrip()}\n"


def found_in(stored: StoredLog, note: str) -> Link:
    """The place in the chain where the checkpoint ends. The chain hash there stands for all events before it. Raises `NoCheckpoint`
    for a text that is not a checkpoint of this log, and `LogDamaged` where the log is not what was signed."""
    checkpoint = _read(stored, note)
    place = Link(checkpoint.events, checkpoint.commits, checkpoint.chain_hash)
    [(end,)] = stored.rows(_END)
    if end < place.position:
        raise LogDamaged(end + 1, f"the log ends at {end}, and the checkpoint that was kept has {place.position} events")
    found = stored.row(_LINK, place.position)
    if found is None or Link(*found) != place:
        at = place.position
        raise LogDamaged(at, f"the commit that ends at {at} is not that of the checkpoint that was kept")
    if Checkpoints(stored).root(place.number) != checkpoint.root:
        raise LogDamaged(place.position, "the stored tree is not that of the checkpoint that was kept")
    return place


def _read(stored: StoredLog, note: str) -> Checkpoint:
    """Of this log, signed by one of its keys."""
    checkpoint = Checkpoint.read(f"{note.rpartition(chr(10) * 2)[0]}\n")
    [(log_id,)] = stored.rows("SELECT log_id FROM log_identity") or [(None,)]
    if checkpoint.log_id != log_id:
        raise NoCheckpoint(f"it is of the log {checkpoint.log_id}, and this log is {log_id}")
    for (key,) in stored.rows(PUBLIC_KEYS):
        try:
            PublicKey.read(key).check(note)
        except NoteInvalid:
            continue
        return checkpoint
    raise NoCheckpoint("no key of this log has signed it: it was changed, or the keys of the log were replaced")
