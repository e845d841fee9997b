/** Many writes, one after the other: how far they are, what each said, and a stop between two of them. */

import { useRef, useState } from "preact/hooks";
import { asFailure } from "../../kernel/failure";

export interface Result {
  what: string;
  problem: string | null;
}

export interface Step {
  what: string;
  act: () => Promise<string>;
}

export interface Run {
  total: number;
  results: readonly Result[];
  running: boolean;
  stopped: boolean;
  start: (steps: readonly Step[]) => Promise<void>;
  stop: () => void;
  /** Forgets what was done. */
  reset: () => void;
}

const NOTHING = { total: 0, results: [] as Result[], running: false, stopped: false };

export function useRun(): Run {
  const [state, setState] = useState(NOTHING);
  const stopping = useRef(false);
  const start = async (steps: readonly Step[]): Promise<void> => {
    stopping.current = false;
    const results: Result[] = [];
    setState({ total: steps.length, results, running: true, stopped: false });
    for (const { what, act } of steps) {
      if (stopping.current) break;
      const said = await act().then(
        (done) => ({ what: `${what}: ${done}`, problem: null }),
        (thrown: unknown) => ({ what, problem: sentenceOf(thrown) }),
      );
      results.push(said);
      setState({ total: steps.length, results: [...results], running: true, stopped: false });
    }
    setState({ total: steps.length, results: [...results], running: false, stopped: results.length < steps.length });
  };
  return { ...state, start, stop: () => void (stopping.current = true), reset: () => setState(NOTHING) };
}

function sentenceOf(thrown: unknown): string {
  const failure = asFailure(thrown);
  return [failure.detail, ...failure.fields.map((each) => `${each.field} ${each.message}`)].join(" · ");
}
