/** Short messages at the edge of the screen. An error stays until it is closed. */

import { signal } from "@preact/signals";
import { asFailure } from "./failure";

export interface Toast {
  id: number;
  tone: "ok" | "warn" | "bad";
  text: string;
  detail?: string;
}

const SECONDS = 6;
export const toasts = signal<readonly Toast[]>([]);
let last = 0;

export function toast(text: string, tone: Toast["tone"] = "ok", detail?: string): void {
  const made: Toast = { id: ++last, tone, text, ...(detail === undefined ? {} : { detail }) };
  toasts.value = [...toasts.value.slice(-4), made];
  if (tone !== "bad") setTimeout(() => dismiss(made.id), SECONDS * 1000);
}

/** Shows a failure as a message. */
export function toastFailure(what: string, thrown: unknown): void {
  const failure = asFailure(thrown);
  toast(what, "bad", failure.transactionId === null ? failure.detail : `${failure.detail} (request ${failure.transactionId})`);
}

export function dismiss(id: number): void {
  toasts.value = toasts.value.filter((each) => each.id !== id);
}
