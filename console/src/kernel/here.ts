/** Whether what was asked for is still wanted: an answer that comes late must not move somebody who has gone on. */

import { useCallback, useEffect, useRef } from "preact/hooks";

/** `const still = useOpening(open)`, and before a question `const isOpen = still()`: then `isOpen()` is false as soon as `open` has changed. */
export function useOpening(open: unknown): () => () => boolean {
  const turn = useRef(0);
  useEffect(() => () => void turn.current++, [open]);
  return useCallback(() => {
    const mine = turn.current;
    return () => turn.current === mine;
  }, []);
}

/** Whether the component is still shown. */
export function useHere(): () => boolean {
  const here = useRef(true);
  useEffect(() => () => void (here.current = false), []);
  return useCallback(() => here.current, []);
}
