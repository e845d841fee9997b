import { signal } from "@preact/signals";

/** The position of the player. Chapters, stills and clips are set by it. */
export class Playhead {
  /** Seconds from the start; null if nothing is loaded. */
  readonly seconds = signal<number | null>(null);
  readonly isLive = signal(false);
  /** The player that shows the picture. */
  player: { seek: (seconds: number) => void; wallClock: () => Date | null; startedAt: () => Date | null } | null = null;

  /** The time for the API: the time of day of a live stream that carries it, otherwise the time from the start. */
  get text(): string | null {
    const seconds = this.seconds.value;
    if (seconds === null) return null;
    if (this.isLive.value) return this.player?.wallClock()?.toISOString() ?? null;
    return timeText(seconds);
  }

  /** Goes to a time of the API. Returns false if the player cannot. */
  goTo(text: string): boolean {
    const seconds = secondsOf(text) ?? this.#sinceStart(text);
    if (seconds === null || this.player === null) return false;
    this.player.seek(seconds);
    return true;
  }

  #sinceStart(text: string): number | null {
    const start = this.player?.startedAt() ?? null;
    const at = Date.parse(text);
    return start === null || Number.isNaN(at) ? null : (at - start.getTime()) / 1000;
  }
}

/** `hh:mm:ss.fff`. */
export function timeText(seconds: number): string {
  const milliseconds = Math.max(0, Math.round(seconds * 1000));
  const two = (value: number): string => String(value).padStart(2, "0");
  const whole = Math.floor(milliseconds / 1000);
  return `${two(Math.floor(whole / 3600))}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}.${String(milliseconds % 1000).padStart(3, "0")}`;
}

/** Parses `hh:mm:ss[.fff]`; null for another text. */
export function secondsOf(text: string): number | null {
  const found = /^(\d{1,3}):([0-5]\d):([0-5]\d(?:\.\d{1,7})?)$/.exec(text.trim());
  return found === null ? null : Number(found[1]) * 3600 + Number(found[2]) * 60 + Number(found[3]);
}
