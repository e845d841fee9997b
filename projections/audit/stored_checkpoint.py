"""A checkpoint that was stored outside the database, compared with the stored log."""

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
    """Return the last signed note of a file that may contain several."""
    text = text.replace("\r\n", "\n")
    begin = text.rfind("\nmedialedger/") + 1
    return f"{text[begin:].rstrip()}\n"


def locate(stored: StoredLog, note: str) -> Link:
    """Return the place in the chain where the checkpoint ends. The chain hash there covers all events before it.

    Raise `NoCheckpoint` if the text is not a checkpoint of this log, and `LogDamaged` if the log differs from what was signed.
    """
    checkpoint = _read(stored, note)
    place = Link(checkpoint.events, checkpoint.commits, checkpoint.chain_hash)
    [(end,)] = stored.rows(_END)
    if end < place.position:
        raise LogDamaged(end + 1, f"the log ends at {end}, but the given checkpoint has {place.position} events")
    row = stored.row(_LINK, place.position)
    if row is None or Link(*row) != place:
        at = place.position
        raise LogDamaged(at, f"the commit that ends at {at} is not that of the given checkpoint")
    if Checkpoints(stored).root(place.number) != checkpoint.root:
        raise LogDamaged(place.position, "the stored tree is not that of the given checkpoint")
    return place


def _read(stored: StoredLog, note: str) -> Checkpoint:
    """Return the checkpoint of a note that belongs to this log and is signed by one of its keys."""
    checkpoint = Checkpoint.read(f"{note.rpartition(chr(10) * 2)[0]}\n")
    [(log_id,)] = stored.rows("SELECT log_id FROM log_identity") or [(None,)]
    if checkpoint.log_id != log_id:
        raise NoCheckpoint(f"it belongs to the log {checkpoint.log_id}, and this log is {log_id}")
    for (key,) in stored.rows(PUBLIC_KEYS):
        try:
            PublicKey.read(key).check(note)
        except NoteInvalid:
            continue
        return checkpoint
    raise NoCheckpoint("it is not signed by a key of this log: it was changed, or the keys of the log were replaced")
