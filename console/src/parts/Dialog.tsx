import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { useOpening } from "../kernel/here";
import { toastFailure } from "../kernel/toasts";
import { Button } from "./Button";
import { Toasts } from "./Toasts";

/** Those that are open, the topmost last. */
const dialogs = signal<readonly string[]>([]);

interface DialogProps {
  title: string;
  open: boolean;
  onClose: () => void;
  children: ComponentChildren;
  /** Buttons at the lower edge. */
  actions?: ComponentChildren;
  /** `center` unless told; `side` is a drawer. */
  place?: "center" | "side";
}

/** A modal `<dialog>`: the browser keeps the focus inside and gives it back; Esc and a click beside it close it. */
export function Dialog({ title, open, onClose, children, actions, place = "center" }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const heading = useId();
  const beside = useRef(false); // a click begins and ends beside it: a selection of text may begin or end inside
  useEffect(() => {
    const dialog = element.current;
    if (!open || !dialog) return;
    dialog.showModal();
    dialogs.value = [...dialogs.peek(), heading];
    return () => {
      dialogs.value = dialogs.peek().filter((each) => each !== heading);
      dialog.close();
    };
  }, [open]);
  if (!open) return null;
  return (
    <dialog
      ref={element}
      class={`dialog ${place}`}
      aria-labelledby={heading}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onMouseDown={(event) => void (beside.current = event.target === element.current)}
      onMouseUp={(event) => void (beside.current &&= event.target === element.current)}
      onClick={(event) => event.target === element.current && beside.current && onClose()}
    >
      <div class="dialog-inside">
        <header class="dialog-head">
          <h2 id={heading}>{title}</h2>
          <Button kind="quiet" icon="close" label="Close" onClick={onClose} />
        </header>
        <div class="dialog-body">{children}</div>
        {actions && <footer class="dialog-actions">{actions}</footer>}
      </div>
      {dialogs.value.at(-1) === heading && <Toasts />}
    </dialog>
  );
}

/** A dialog at the right edge: details of a row, without leaving the list. */
export function Drawer(props: Omit<DialogProps, "place">) {
  return <Dialog {...props} place="side" />;
}

interface ConfirmProps {
  title: string;
  /** What will happen. */
  children: ComponentChildren;
  /** The word on the button: what is done, such as `Stop`. */
  action: string;
  danger?: boolean;
  open: boolean;
  onClose: () => void;
  /** Done while the button shows that it works; then the dialog closes. What it throws is shown, and the dialog stays. */
  onConfirm: () => Promise<void>;
}

/** Asks before something is done. */
export function Confirm({ title, children, action, danger = false, open, onClose, onConfirm }: ConfirmProps) {
  const [busy, setBusy] = useState(false);
  const still = useOpening(open);
  useEffect(() => setBusy(false), [open]);
  const confirm = async (): Promise<void> => {
    const isOpen = still();
    setBusy(true);
    try {
      await onConfirm();
      if (isOpen()) onClose();
    } catch (thrown) {
      toastFailure(`Not done: ${title}`, thrown);
    } finally {
      if (isOpen()) setBusy(false);
    }
  };
  const actions = (
    <>
      <Button onClick={onClose}>Back</Button>
      <Button kind={danger ? "danger" : "primary"} busy={busy} onClick={() => void confirm()}>
        {action}
      </Button>
    </>
  );
  return (
    <Dialog title={title} open={open} onClose={onClose} actions={actions}>
      {children}
    </Dialog>
  );
}

/** Messages, where no dialog is open. A modal dialog covers all that is not inside of it, so the topmost one shows them itself. */
export function PageToasts() {
  return dialogs.value.length === 0 ? <Toasts /> : null;
}
