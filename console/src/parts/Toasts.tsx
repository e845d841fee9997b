import { to, useLocation } from "../kernel/router";
import { runsGoingOn } from "../kernel/runs";
import { dismiss, toasts } from "../kernel/toasts";
import { Button } from "./Button";
import { RunAway } from "./RunReport";

const WORDS = { ok: "Done", warn: "Note", bad: "Error" } as const;

/** Messages, and what goes on for other pages. */
export function Toasts() {
  const { path } = useLocation();
  return (
    <div class="toasts" role="region" aria-label="Messages" aria-live="polite">
      {runsGoingOn.value
        .filter((run) => to(run.page) !== path)
        .map((run) => (
          <RunAway key={run.state.name} run={run} />
        ))}
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
