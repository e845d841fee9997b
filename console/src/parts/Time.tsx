import { absolute, now, relative, short } from "../kernel/time";

interface TimeProps {
  at: string | null | undefined;
  /** `both` unless told: `20:15 · in 5 min`. */
  as?: "both" | "relative" | "absolute" | "full";
}

/** A time: local, 24 hours, with how far away it is. The zone and the seconds are in the tooltip, with `full` in the text. */
export function Time({ at, as = "both" }: TimeProps) {
  const when = at ? new Date(at) : null;
  if (when === null || Number.isNaN(when.getTime())) return <span class="faint">–</span>;
  const far = as === "absolute" || as === "full" ? "" : relative(when.getTime(), now.value);
  const here = as === "full" ? absolute(when) : as === "relative" ? "" : short(when);
  return (
    <time class="time" dateTime={when.toISOString()} title={absolute(when)}>
      {here}
      {here && far && <span class="faint"> · </span>}
      {far && <span class={here ? "faint" : ""}>{far}</span>}
    </time>
  );
}
