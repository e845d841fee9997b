/** The notice that a page is not current: above the page, and in the topmost dialog, which covers the page. */

import { liveness, oldSince } from "../kernel/changes";
import { unread } from "../kernel/query";
import { sessionFailure } from "../kernel/session";
import { clock } from "../kernel/time";
import { Button } from "./Button";

const WORDS: Readonly<Record<string, readonly [what: string, why: string]>> = {
  lost: ["Not connected", "The console reconnects automatically."],
  away: ["The database has not answered", "The console continues automatically when it does."],
  full: ["No live updates", "All places of the stream of changes are taken. The console reconnects automatically."],
};

/** Above a page whose connection is lost. Nothing else on it may look current: shell.css removes its colours. */
export function ConnectionBand() {
  const since = oldSince.value;
  const words = WORDS[liveness.value];
  if (since === null || words === undefined) return null;
  const [what, why] = words;
  const said = sessionFailure.value?.status ? sessionFailure.value.detail : null;
  return (
    <p class="band" role="alert">
      <strong>
        {what} since {clock(new Date(since), true)}: this page is outdated.
      </strong>{" "}
      {said ?? why}
    </p>
  );
}

/** The notice above a page for parts that could not be read and do not show their failure. */
export function UnreadNote() {
  const all = unread.value;
  if (all.length === 0 || oldSince.value !== null) return null;
  return (
    <div class="notice unread" role="status">
      <p>
        <strong>No answer</strong> for a part of this page: {all[0]!.failure.detail}
      </p>
      <Button icon="refresh" onClick={() => all.forEach((each) => each.refresh())}>
        Try again
      </Button>
    </div>
  );
}
