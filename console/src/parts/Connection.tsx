/** What says that a page is not of now: above the page, and in the topmost dialog, which covers the page. */

import { liveness, oldSince } from "../kernel/changes";
import { unread } from "../kernel/query";
import { sessionFailure } from "../kernel/session";
import { clock } from "../kernel/time";
import { Button } from "./Button";

const WORDS: Readonly<Record<string, readonly [what: string, why: string]>> = {
  lost: ["Not connected", "The console tries again by itself."],
  away: ["The database has not answered", "The console goes on by itself when it does."],
  full: ["No live updates", "All places of the stream of changes are taken. The console tries again by itself."],
};

/** Above a page whose connection is lost. Nothing else on it may look as if it were of now: shell.css takes its colours away. */
export function ConnectionBand() {
  const since = oldSince.value;
  const words = WORDS[liveness.value];
  if (since === null || words === undefined) return null;
  const [what, why] = words;
  const said = sessionFailure.value?.status ? sessionFailure.value.detail : null;
  return (
    <p class="band" role="alert">
      <strong>
        {what} since {clock(new Date(since), true)}: what you see is old.
      </strong>{" "}
      {said ?? why}
    </p>
  );
}

/** Above a page of which a part could not be read, and does not say so in its own place. */
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
