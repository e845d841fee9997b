/** Checks whether an answer is still needed: a late answer must not navigate a user who has moved on. */

import { useCallback, useEffect, useRef } from "preact/hooks";

/** `const still = useOpening(open)`, and before a request `const isOpen = still()`; `isOpen()` is false as soon as `open` has changed. */
export function useOpening(open: unknown): () => () => boolean {
  const turn = useRef(0);
  useEffect(() => () => void turn.current++, [open]);
  return useCallback(() => {
    const mine = turn.current;
    return () => turn.current === mine;
  }, []);
}

/** Returns a function that is true while the component is shown. */
export function useHere(): () => boolean {
  const here = useRef(true);
  useEffect(() => () => void (here.current = false), []);
  return useCallback(() => here.current, []);
}
