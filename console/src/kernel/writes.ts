/** Writes of this console that are not answered yet. What they change is asked for after the answer: it may be gone, and its page closes then. */

/** Milliseconds after an answer, until it has been read and the page has been drawn. */
const AFTERWARDS = 200;
let open = 0;
let ended = -Infinity;

export function writeBegun(): void {
  open++;
}

export function writeEnded(): void {
  open--;
  ended = performance.now();
}

export function writing(): boolean {
  return open > 0 || performance.now() - ended < AFTERWARDS;
}
