import { dismiss, toasts } from "../kernel/toasts";
import { Button } from "../parts";

const WORDS = { ok: "Done", warn: "Note", bad: "Error" } as const;

export function Toasts() {
  return (
    <div class="toasts" role="region" aria-label="Messages" aria-live="polite">
      {toasts.value.map((each) => (
        <div key={each.id} class={`toast tone-${each.tone}`} role={each.tone === "bad" ? "alert" : "status"}>
          <div>
            <p>
              <span class="unseen">{WORDS[each.tone]}: </span>
              {each.text}
            </p>
            {each.detail && <p class="faint">{each.detail}</p>}
          </div>
          <Button kind="quiet" icon="close" label="Dismiss" onClick={() => dismiss(each.id)} />
        </div>
      ))}
    </div>
  );
}
