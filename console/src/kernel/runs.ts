/** A series of writes with progress, results and a stop. It continues while other pages are shown, and is shown there too. */

import { type ReadonlySignal, computed, signal } from "@preact/signals";
import { asFailure } from "./failure";
import { session } from "./session";
import { toast } from "./toasts";

export interface Result {
  what: string;
  problem: string | null;
}

export interface Step {
  what: string;
  act: () => Promise<string>;
}

interface State {
  name: string;
  total: number;
  results: readonly Result[];
  running: boolean;
  stopped: boolean;
}

interface Place {
  /** The path of the page that shows it. */
  page: string;
  /** Number of concurrent writes. */
  atOnce?: number;
}

const NOTHING: State = { name: "", total: 0, results: [], running: false, stopped: false };
const TOLD = 5;
const all = signal<readonly Run[]>([]);
const ask = (event: Event): void => event.preventDefault();

/** Created once for each kind of writes, outside of components, which exist only as long as their page and selected rows. */
export class Run {
  readonly page: string;
  readonly #atOnce: number;
  readonly #state = signal(NOTHING);
  #stopping = false;
  #client: string | undefined;

  constructor({ page, atOnce = 1 }: Place) {
    this.page = page;
    this.#atOnce = atOnce;
    all.value = [...all.peek(), this];
  }

  /** Not shown to another user of this browser. */
  get state(): State {
    const state = this.#state.value; // always read, so that a component that draws it is subscribed
    return this.#isOwn ? state : NOTHING;
  }

  get #isOwn(): boolean {
    return session.value?.client === this.#client;
  }

  /** Carries out the writes in order, until it is stopped or the session ends. The results are also shown in a message. */
  async start(name: string, steps: readonly Step[]): Promise<void> {
    if (this.#state.peek().running) throw new Error("The previous changes are still in progress.");
    this.#stopping = false;
    this.#client = session.peek()?.client;
    const results: Result[] = [];
    const waiting = [...steps];
    const show = (more: Partial<State> = {}): void => void (this.#state.value = { name, total: steps.length, results: [...results], running: true, stopped: false, ...more });
    const work = async (): Promise<void> => {
      for (let step = this.#next(waiting); step !== undefined; step = this.#next(waiting)) {
        results.push(await resultOf(step));
        show();
      }
    };
    show();
    globalThis.addEventListener?.("beforeunload", ask);
    await Promise.all(Array.from({ length: this.#atOnce }, work));
    globalThis.removeEventListener?.("beforeunload", ask);
    show({ running: false, stopped: waiting.length > 0 });
    if (this.#isOwn) tell(this.#state.peek());
  }

  /** Stops after the writes in progress. */
  stop(): void {
    this.#stopping = true;
  }

  /** Forgets the results. */
  reset(): void {
    if (!this.#state.peek().running) this.#state.value = NOTHING;
  }

  #next(waiting: Step[]): Step | undefined {
    return this.#stopping || !this.#isOwn ? undefined : waiting.shift();
  }
}

/** The runs in progress. */
export const runsGoingOn: ReadonlySignal<readonly Run[]> = computed(() => all.value.filter((run) => run.state.running));

async function resultOf({ what, act }: Step): Promise<Result> {
  try {
    return { what: `${what}: ${await act()}`, problem: null };
  } catch (thrown) {
    const failure = asFailure(thrown);
    return { what, problem: [failure.detail, ...failure.fields.map((each) => `${each.field} ${each.message}`)].join(" · ") };
  }
}

function tell({ name, results, total }: State): void {
  const failed = results.filter((each) => each.problem !== null);
  const rest = total - results.length;
  const said = [`${results.length - failed.length} done`, failed.length > 0 && `${failed.length} failed`, rest > 0 && `${rest} not tried`].filter(Boolean).join(", ");
  const why = failed.slice(0, TOLD).map((each) => `${each.what}: ${each.problem}`).join("; ");
  toast(`${name}: ${said}`, failed.length > 0 || rest > 0 ? "bad" : "ok", why || undefined);
}
