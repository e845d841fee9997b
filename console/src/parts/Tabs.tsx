import type { Tone } from "../kernel/states";

export interface Tab {
  key: string;
  title: string;
  count?: number;
  /** Colours the count where it is not 0: `bad` for what has failed. */
  tone?: Tone;
}

interface TabsProps {
  label: string;
  tabs: readonly Tab[];
  chosen: string;
  onChoose: (key: string) => void;
  /** The id of what the tabs change. */
  controls?: string;
}

/** Tabs with counts. Arrow keys go from one to the next. */
export function Tabs({ label, tabs, chosen, onChoose, controls }: TabsProps) {
  const pressed = (event: KeyboardEvent): void => {
    const at = tabs.findIndex((each) => each.key === chosen);
    const to: Record<string, number> = { ArrowRight: at + 1, ArrowLeft: at - 1 + tabs.length, Home: 0, End: tabs.length - 1 };
    const next = to[event.key];
    if (next === undefined) return;
    event.preventDefault();
    const place = next % tabs.length;
    onChoose(tabs[place]!.key);
    (event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>("[role=tab]")[place]?.focus();
  };
  return (
    <div class="tabs" role="tablist" aria-label={label} onKeyDown={pressed}>
      {tabs.map((each) => (
        <button
          key={each.key}
          type="button"
          role="tab"
          aria-selected={each.key === chosen}
          aria-controls={controls}
          tabIndex={each.key === chosen ? 0 : -1}
          onClick={() => onChoose(each.key)}
        >
          {each.title}
          {each.count !== undefined && <span class={`count tone-${each.count ? (each.tone ?? "neutral") : "off"}`}>{each.count}</span>}
        </button>
      ))}
    </div>
  );
}
