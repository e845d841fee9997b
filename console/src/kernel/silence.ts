/** Notices a dead event stream: its connection is open, and nothing comes. */

/** Milliseconds, for streams of the job engine: a living one has a beat every 15 seconds, and a browser waits 30 seconds after `full`. */
export const ENGINE_SILENCE = 40_000;

export interface Silence {
  /** To be called with whatever comes, and when the stream is opened. */
  heard: () => void;
  end: () => void;
}

/** Calls `dead` when nothing was heard for so many milliseconds. */
export function watchSilence(dead: () => void, longest: number): Silence {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const end = (): void => clearTimeout(timer);
  const heard = (): void => {
    end();
    timer = setTimeout(dead, longest);
  };
  return { heard, end };
}
