import { useEffect, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { type MediaEvent } from "../../kernel/api";
import { asFailure, type Failure } from "../../kernel/failure";
import { useOpening } from "../../kernel/here";
import { toast, toastFailure } from "../../kernel/toasts";
import { Button, Dialog, FormError } from "../../parts";
import { overtaken, type Overtaken, OvertakenNote } from "./Overtaken";

/** An Event as it was shown. */
export interface Seen {
  event: MediaEvent;
  etag: string | null;
}

interface GuardedConfirmProps {
  title: string;
  action: string;
  children: ComponentChildren;
  danger?: boolean;
  /** The Event when the dialog was opened; null while it is closed. */
  seen: Seen | null;
  onClose: () => void;
  /** Sends the change with `If-Match`. */
  send: (seen: Seen) => Promise<unknown>;
  /** The message after success. */
  done: string;
}

/** Asks before an Event is changed. After a concurrent change it names the author, shows the differences, and offers to repeat the action. */
export function GuardedConfirm({ title, action, children, danger = false, seen, onClose, send, done }: GuardedConfirmProps) {
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [faster, setFaster] = useState<Overtaken | null>(null);
  const still = useOpening(seen);
  useEffect(() => {
    setBusy(false);
    setFailure(null);
    setFaster(null);
  }, [seen]);
  const confirm = async (): Promise<void> => {
    const isOpen = still();
    const shown = faster ? { event: faster.now.data, etag: faster.now.etag } : seen!;
    setBusy(true);
    setFailure(null);
    try {
      await send(shown);
      toast(done, "ok", shown.event.title.slice(0, 100));
      if (isOpen()) onClose();
    } catch (thrown) {
      if (!isOpen()) return toastFailure(`Not done: ${title}`, thrown);
      const wrong = asFailure(thrown);
      if (wrong.wasOvertaken) await overtaken(shown.event).then((found) => isOpen() && setFaster(found), (other: unknown) => isOpen() && setFailure(asFailure(other)));
      else setFailure(wrong);
    } finally {
      if (isOpen()) setBusy(false);
    }
  };
  const actions = (
    <>
      <Button onClick={onClose}>Back</Button>
      <Button kind={danger ? "danger" : "primary"} busy={busy} onClick={() => void confirm()}>
        {faster ? `${action} anyway` : action}
      </Button>
    </>
  );
  return (
    <Dialog title={title} open={seen !== null} onClose={onClose} actions={actions}>
      <div class="stack">
        {seen && (
          <p class="confirm-title">
            <bdi>{seen.event.title || "Without a title"}</bdi>
          </p>
        )}
        {children}
        {faster && <OvertakenNote of={faster} />}
        <FormError failure={failure} />
      </div>
    </Dialog>
  );
}
