/** Pending writes of this console. Their changes are read after the answer, because a page closes if its record was deleted. */

/** Milliseconds after an answer until it has been read and the page has been drawn. */
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
