/** A repeated request. The next one waits for the previous answer, so that answers of a slow server are shown too. */

import { Failure } from "./failure";
import { writing } from "./writes";

/** Milliseconds after which a poll reports that the server does not answer. A later answer is still used. */
const SILENT = 10_000;
/** Milliseconds after which a poll repeats a request that was not answered. */
const PATIENCE = 60_000;
/** Milliseconds that a change waits for the answer to a write, which may have caused it. */
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

  /** Sends the request immediately and discards a pending one. */
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

  /** Sends the request unless one is pending. */
  poll(): void {
    const open = this.#open;
    const waited = open === null ? PATIENCE : Date.now() - open.since;
    if (open !== null && !open.isSilent && waited >= SILENT) {
      open.isSilent = true;
      this.told.failed(new Failure(0, "The server does not answer."));
    }
    if (waited >= PATIENCE) this.now();
  }

  /** Sends the request after a delay that combines several changes. A pending answer may predate the change. */
  changed(quiet: number, since = performance.now()): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      const written = !writing() || performance.now() - since >= WRITE_PATIENCE;
      if (this.#open === null && written) this.now();
      else this.changed(quiet, since);
    }, quiet);
  }

  /** Stops the requests and discards a pending answer. */
  end(): void {
    this.#over = true;
    clearTimeout(this.#timer);
    this.#open?.end.abort();
    this.#open = null;
  }
}
