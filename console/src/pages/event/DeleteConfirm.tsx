import { answered, api, ifMatch } from "../../kernel/api";
import { GuardedConfirm, type Seen } from "./GuardedConfirm";

interface DeleteConfirmProps {
  /** The Event to delete; null while the dialog is closed. */
  seen: Seen | null;
  onClose: () => void;
  deleted: () => void;
}

/** Asks before an Event is deleted. */
export function DeleteConfirm({ seen, onClose, deleted }: DeleteConfirmProps) {
  return (
    <GuardedConfirm
      title="Delete the Event"
      action="Delete"
      danger
      seen={seen}
      onClose={onClose}
      send={({ event, etag }) => answered(api.DELETE("/api/event/{id}", { params: { path: { id: event.id } }, headers: ifMatch(etag) })).then(deleted)}
      done="Deleted"
    >
      <p>It disappears from all lists, and its infrastructure is terminated. Its data and history are kept, and it can be restored in the tab Deleted of the schedule and at its address.</p>
    </GuardedConfirm>
  );
}
