/** Detects a dead event stream, whose connection is open but sends nothing. */

/** Milliseconds, for streams of the job engine: a working stream sends a beat every 15 seconds, and a browser waits 30 seconds after `full`. */
export const ENGINE_SILENCE = 40_000;

export interface Silence {
  /** Must be called for each message, and when the stream is opened. */
  heard: () => void;
  end: () => void;
}

/** Calls `dead` after `longest` milliseconds without a message. */
export function watchSilence(dead: () => void, longest: number): Silence {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const end = (): void => clearTimeout(timer);
  const heard = (): void => {
    end();
    timer = setTimeout(dead, longest);
  };
  return { heard, end };
}
