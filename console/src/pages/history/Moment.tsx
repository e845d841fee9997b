import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { useKey } from "../../kernel/keys";
import { absolute } from "../../kernel/time";
import { Button } from "../../parts";
import { summary, typeWord, whoWord, type Entry } from "../audit/words";

const QUIET = 150;
const MARKS = 400;

interface SliderProps {
  entries: readonly Entry[];
  version: number;
  onVersion: (version: number) => void;
}

/** The slider over the versions of an aggregate. The address follows when the slider rests, and does not move a slider in motion. */
export function VersionSlider({ entries, version, onVersion }: SliderProps) {
  const newest = entries.length;
  const [moved, setMoved] = useState<number | null>(null);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const told = useRef(version);
  useEffect(() => setMoved((now) => (version === told.current && now !== version ? now : null)), [version]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const at = moved ?? version;
  const place = useRef(at);
  place.current = at;
  const move = (next: number): void => {
    const bounded = Math.max(1, Math.min(newest, next));
    place.current = bounded;
    setMoved(bounded);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      told.current = bounded;
      onVersion(bounded);
    }, QUIET);
  };
  const back = useCallback(() => move(place.current - 1), [newest]);
  const forth = useCallback(() => move(place.current + 1), [newest]);
  useKey("[", "The previous version", back);
  useKey("]", "The next version", forth);
  const entry = entries[at - 1];
  return (
    <div class="slider">
      <Button kind="quiet" icon="left" label="The previous version ([)" disabled={at <= 1} onClick={back} />
      <div class="slider-line">
        <Marks entries={entries} />
        <input
          type="range"
          aria-label="Version"
          min={1}
          max={newest}
          value={at}
          aria-valuetext={entry ? `Version ${at} of ${newest}, ${absolute(new Date(entry.recordedAt))}, ${typeWord(entry.type)}, by ${whoWord(entry)}` : ""}
          onInput={(event) => move(event.currentTarget.valueAsNumber)}
        />
      </div>
      <Button kind="quiet" icon="right" label="The next version (])" disabled={at >= newest} onClick={forth} />
      {entry && (
        <p class="slider-text">
          <strong>
            Version {at} of {newest.toLocaleString("en")}
          </strong>
          <time dateTime={entry.recordedAt}>{absolute(new Date(entry.recordedAt))}</time>
          <bdi class="slider-who">{whoWord(entry)}</bdi>
          <span>{typeWord(entry.type)}</span>
          <bdi class="faint slider-what">{summary(entry)}</bdi>
        </p>
      )}
    </div>
  );
}

/** Marks for the times at which the state changed, as far as there is space. */
function Marks({ entries }: { entries: readonly Entry[] }) {
  if (entries.length < 2 || entries.length > MARKS) return null;
  const step = 100 / (entries.length - 1);
  return (
    <svg class="slider-marks" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
      {entries.map((each, index) => (
        <line key={each.version} class={each.type.endsWith(".state_changed") ? "state" : ""} x1={index * step} x2={index * step} y1={each.type.endsWith(".state_changed") ? 0 : 4} y2={8} />
      ))}
    </svg>
  );
}

interface PickerProps {
  label: string;
  version: number;
  least: number;
  entries: readonly Entry[];
  onVersion: (version: number) => void;
}

/** A version by its number, with its time. */
export function VersionPicker({ label, version, least, entries, onVersion }: PickerProps) {
  const entry = entries[version - 1];
  const changed = (value: number): void => {
    if (!Number.isInteger(value)) return;
    onVersion(Math.max(least, Math.min(entries.length, value)));
  };
  return (
    <label class="picker">
      <span>{label}</span>
      <input type="number" min={least} max={entries.length} value={version} onChange={(event) => changed(event.currentTarget.valueAsNumber)} />
      <span class="faint">{entry ? absolute(new Date(entry.recordedAt)) : "before it existed"}</span>
    </label>
  );
}
