import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useOpening } from "../kernel/here";
import { toastFailure } from "../kernel/toasts";
import { Button } from "./Button";
import { ConnectionBand } from "./Connection";
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

/** A modal `<dialog>`: the browser keeps the focus inside; afterwards it is where it was before. Esc and a click beside it close it. */
export function Dialog({ title, open, onClose, children, actions, place = "center" }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const heading = useId();
  const beside = useRef(false); // a click begins and ends beside it: a selection of text may begin or end inside
  useLayoutEffect(() => {
    const dialog = element.current;
    if (!open || !dialog) return;
    const opener = openerNow();
    dialog.showModal();
    dialogs.value = [...dialogs.peek(), heading];
    return () => {
      dialogs.value = dialogs.peek().filter((each) => each !== heading);
      dialog.close();
      giveBack(opener);
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
        {dialogs.value.at(-1) === heading && <ConnectionBand />}
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

/** What has the focus, and how to find it again where its page has drawn it anew meanwhile. */
interface Opener {
  element: Element | null;
  selector: string | null;
}

/** Of a dialog that has just been closed: the next one may take its place. */
let pending: Opener | null = null;

function openerNow(): Opener {
  const element = document.activeElement;
  return pending !== null && element === document.body ? pending : { element, selector: selectorOf(element) };
}

/** By what names an element on its page: a row or a block of an Event, a link, a button with its text. */
function selectorOf(element: Element | null): string | null {
  if (!(element instanceof HTMLElement)) return null;
  if (element.id !== "") return `#${CSS.escape(element.id)}`;
  for (const name of ["data-event", "data-index", "href", "aria-label"]) {
    const value = element.getAttribute(name);
    if (value !== null) return `${element.localName}[${name}="${CSS.escape(value)}"]`;
  }
  return null;
}

/** The focus goes back to what opened a dialog; where that is gone, to the content of the page. Whoever has moved it meanwhile keeps it. */
function giveBack(opener: Opener): void {
  const { element, selector } = (pending = opener);
  requestAnimationFrame(() => {
    if (pending === opener) pending = null;
    const has = document.activeElement;
    if (has && has !== document.body && has.isConnected) return;
    const top = [...document.querySelectorAll<HTMLDialogElement>("dialog[open]")].at(-1);
    const again = element?.isConnected && element !== document.body ? element : selector === null ? null : (top ?? document).querySelector(selector);
    (again instanceof HTMLElement ? again : (top ?? document.getElementById("main")))?.focus({ preventScroll: true });
  });
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
