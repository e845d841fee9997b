import { api, fasterOne, found, type Answer, type MediaEvent } from "../../kernel/api";
import { may } from "../../kernel/session";
import { Time } from "../../parts";
import { type Difference, differences } from "./differences";

/** Somebody changed an Event first: who, if the caller may read the audit, and what is different now. */
export interface Overtaken {
  by: { actor: string; at: string } | null;
  changes: readonly Difference[];
  now: Answer<MediaEvent>;
}

/** What became of an Event since it was `seen`. Throws a `Failure`, also where it is deleted. */
export async function overtaken(seen: MediaEvent): Promise<Overtaken> {
  const now = await found(api.GET("/api/event/{id}", { params: { path: { id: seen.id } } }));
  const by = may("auditor") ? await fasterOne("event", seen.id).catch(() => null) : null;
  return { by, changes: differences(seen, now.data), now };
}

/** Tells it in a form or a dialog, above the button that tries again. */
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
      {of.changes.length === 0 && <p>What this page shows is the same as before.</p>}
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
