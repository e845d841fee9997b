import type { StateWord } from "../kernel/states";

/** A state: a colour and a word. `<Badge state={stateWord(EVENT_STATES, event.state)} />`. */
export function Badge({ state, title }: { state: StateWord; title?: string }) {
  return (
    <span class={`badge tone-${state.tone}`} title={title}>
      <span class="badge-dot" aria-hidden="true" />
      {state.word}
    </span>
  );
}
