/** Keyboard shortcuts. Each is registered with a sentence for the list behind `?`. Two keys in sequence are written `g e`. */

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

export interface KeyBinding {
  keys: string;
  what: string;
  act: () => void;
}

export const bindings = signal<readonly KeyBinding[]>([]);
const PAUSE = 1000;
let before = "";
let timer: ReturnType<typeof setTimeout> | undefined;

/** Registers a key while the component is shown. */
export function useKey(keys: string, what: string, act: () => void): void {
  useEffect(() => {
    const made: KeyBinding = { keys, what, act };
    bindings.value = [...bindings.value, made];
    return () => {
      bindings.value = bindings.value.filter((each) => each !== made);
    };
  }, [keys, what, act]);
}

export function followKeys(): () => void {
  document.addEventListener("keydown", pressed);
  return () => document.removeEventListener("keydown", pressed);
}

function pressed(event: KeyboardEvent): void {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isTyping(event.target)) return;
  if (document.querySelector("dialog[open]") !== null) return;
  const both = before === "" ? event.key : `${before} ${event.key}`;
  const bound = bindings.value.findLast((each) => each.keys === both) ?? bindings.value.findLast((each) => each.keys === event.key);
  clearTimeout(timer);
  before = event.key.length === 1 && bound === undefined ? event.key : "";
  timer = setTimeout(() => (before = ""), PAUSE);
  if (bound === undefined) return;
  event.preventDefault();
  bound.act();
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}
