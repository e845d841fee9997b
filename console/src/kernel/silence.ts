/** Notices a dead event stream: its connection is open, and nothing comes. A living one has a beat every 15 seconds. */

const LONGEST = 40_000; // also more than the 30 seconds that a browser waits after `full`

export interface Silence {
  /** To be called with whatever comes, and when the stream is opened. */
  heard: () => void;
  end: () => void;
}

/** Calls `dead` when nothing was heard for too long. */
export function watchSilence(dead: () => void): Silence {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const end = (): void => clearTimeout(timer);
  const heard = (): void => {
    end();
    timer = setTimeout(dead, LONGEST);
  };
  return { heard, end };
}
