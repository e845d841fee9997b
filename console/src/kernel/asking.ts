/** One question, asked again and again: a new one waits for the answer of the one before, so that a slow server is shown too. */

import { Failure } from "./failure";
import { writing } from "./writes";

/** A poll says of a server that has not answered for so long that it is silent. Its answer counts all the same. */
const SILENT = 10_000;
/** A server that has not answered for so long is asked anew by a poll. */
const PATIENCE = 60_000;
/** So long a change waits for the answer to a write, which may have made it. */
const WRITE_PATIENCE = 5000;

interface Told<T> {
  begun: () => void;
  answered: (answer: T) => void;
  failed: (thrown: unknown) => void;
}

export class Asking<T> {
  #open: { end: AbortController; since: number; isSilent: boolean } | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #over = false;

  constructor(
    private readonly ask: (end: AbortSignal) => Promise<T>,
    private readonly told: Told<T>,
  ) {}

  /** At once: the answer that is waited for is given up. */
  now(): void {
    if (this.#over) return;
    this.#open?.end.abort();
    const open = { end: new AbortController(), since: Date.now(), isSilent: false };
    const told = (tell: () => void): void => {
      if (this.#open !== open) return;
      this.#open = null;
      tell();
    };
    this.#open = open;
    this.told.begun();
    this.ask(open.end.signal).then(
      (answer) => told(() => this.told.answered(answer)),
      (thrown: unknown) => told(() => this.told.failed(thrown)),
    );
  }

  /** Unless an answer is waited for. */
  poll(): void {
    const open = this.#open;
    const waited = open === null ? PATIENCE : Date.now() - open.since;
    if (open !== null && !open.isSilent && waited >= SILENT) {
      open.isSilent = true;
      this.told.failed(new Failure(0, "The server does not answer."));
    }
    if (waited >= PATIENCE) this.now();
  }

  /** After a while; further changes meanwhile are one question with it. An answer that is waited for may be from before the change. */
  changed(quiet: number, since = performance.now()): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      const written = !writing() || performance.now() - since >= WRITE_PATIENCE;
      if (this.#open === null && written) this.now();
      else this.changed(quiet, since);
    }, quiet);
  }

  /** Nobody wants the answer any more. */
  end(): void {
    this.#over = true;
    clearTimeout(this.#timer);
    this.#open?.end.abort();
    this.#open = null;
  }
}
