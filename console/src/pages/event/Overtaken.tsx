import { api, fasterOne, found, type Answer, type MediaEvent } from "../../kernel/api";
import { may } from "../../kernel/session";
import { Time } from "../../parts";
import { type Difference, differences } from "./differences";

/** A concurrent change of an Event: its author, if the caller may read the audit, and the differences. */
export interface Overtaken {
  by: { actor: string; at: string } | null;
  changes: readonly Difference[];
  now: Answer<MediaEvent>;
}

/** Reads the changes of an Event since it was `seen`. Throws a `Failure`, also if it is deleted. */
export async function overtaken(seen: MediaEvent): Promise<Overtaken> {
  const now = await found(api.GET("/api/event/{id}", { params: { path: { id: seen.id } } }));
  const by = may("auditor") ? await fasterOne("event", seen.id).catch(() => null) : null;
  return { by, changes: differences(seen, now.data), now };
}

/** Shows it in a form or a dialog, above the button that repeats the action. */
export function OvertakenNote({ of }: { of: Overtaken }) {
  return (
    <div class="notice" role="alert">
      <p>
        <strong>{of.by ? <bdi>{of.by.actor}</bdi> : "Somebody"} was faster</strong>
        {of.by && (
          <>
            : <Time at={of.by.at} as="full" />
          </>
        )}
        . Nothing was done.
      </p>
      {of.changes.length === 0 && <p>The fields on this page are unchanged.</p>}
      <ul class="changes">
        {of.changes.map((each) => (
          <li key={each.name}>
            {each.name}: <bdi>{each.before}</bdi> → <strong><bdi>{each.after}</bdi></strong>
          </li>
        ))}
      </ul>
    </div>
  );
}
