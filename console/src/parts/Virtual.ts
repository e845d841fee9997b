import { Virtualizer, elementScroll, observeElementOffset, observeElementRect } from "@tanstack/virtual-core";
import type { RefObject } from "preact";
import { useEffect, useReducer, useRef } from "preact/hooks";

export interface VirtualRows {
  /** Indexes of the rows to draw. */
  indexes: readonly number[];
  /** Heights of what is left out above and below, in pixels. */
  above: number;
  below: number;
  /** Scrolls until the row is seen. */
  reveal: (index: number) => void;
}

/** Which rows of a long list are seen. All have one height. */
export function useVirtualRows(scroller: RefObject<HTMLElement | null>, count: number, height: number): VirtualRows {
  const [, draw] = useReducer((drawn: number) => drawn + 1, 0);
  const made = useRef<Virtualizer<HTMLElement, HTMLElement> | null>(null);
  const options = {
    count,
    estimateSize: () => height,
    getScrollElement: () => scroller.current,
    overscan: 12,
    observeElementRect,
    observeElementOffset,
    scrollToFn: elementScroll,
    onChange: () => draw(undefined),
  };
  made.current ??= new Virtualizer(options);
  const virtualizer = made.current;
  virtualizer.setOptions(options);
  useEffect(() => virtualizer._didMount(), []);
  useEffect(() => virtualizer._willUpdate());
  useEffect(() => virtualizer.measure(), [height]);
  const items = virtualizer.getVirtualItems();
  const total = count * height;
  return {
    indexes: items.map((each) => each.index),
    above: items[0]?.start ?? 0,
    below: items.length > 0 ? total - items[items.length - 1]!.end : total,
    reveal: (index) => virtualizer.scrollToIndex(index, { align: "auto" }),
  };
}
