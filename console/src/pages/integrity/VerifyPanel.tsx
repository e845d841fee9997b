import type { Schemas } from "../../kernel/api";
import { to } from "../../kernel/router";
import { Button, FailureNote, Panel, Progress, Time } from "../../parts";
import { MOST, endVerifying, verifyAll, verifying, type Bad } from "./verifying";

type Integrity = Schemas["LogIntegrity"];

/** The known integrity of the log, and a verification that the user starts. */
export function VerifyPanel({ integrity }: { integrity: Integrity }) {
  const run = verifying.value;
  const isRunning = run?.state === "running";
  const action = isRunning ? (
    <Button onClick={endVerifying}>Cancel</Button>
  ) : (
    <Button kind="primary" icon="integrity" disabled={integrity.head === 0} onClick={() => void verifyAll(integrity.head)}>
      Verify now
    </Button>
  );
  return (
    <Panel title="Verification" actions={action}>
      <div class="verification">
        <Background integrity={integrity} />
        {run && (
          <section aria-label="Verification of now" class="run">
            {isRunning && <Progress value={Math.min(run.checked, run.head)} max={Math.max(run.head, 1)} label="Verified" />}
            <p role="status" class={run.state === "done" ? (run.bad.length === 0 ? "verdict tone-ok" : "verdict tone-bad") : ""}>
              {sentence(run)}
            </p>
            {run.failure && <FailureNote failure={run.failure} retry={() => void verifyAll(integrity.head)} />}
            {run.bad.length > 0 && <BadPositions bad={run.bad} />}
          </section>
        )}
      </div>
    </Panel>
  );
}

function sentence(run: NonNullable<typeof verifying.value>): string {
  const [checked, head] = [run.checked.toLocaleString("en"), run.head.toLocaleString("en")];
  const time = run.seconds < 10 ? `${run.seconds.toFixed(1)} s` : `${Math.round(run.seconds)} s`;
  if (run.state === "running") return run.checked === 0 ? `Verifying ${head} events …` : `${Math.floor((run.checked / run.head) * 10) * 10} % of ${head} events`;
  if (run.state === "ended") return `Ended at position ${checked} of ${head}: ${run.bad.length === 0 ? "no damage up to there" : "see the damaged positions"}.`;
  if (run.state === "failed") return `It could not continue after position ${checked}.`;
  if (run.bad.length >= MOST) return `The log is damaged. The verification ended after ${MOST} damaged positions, at position ${checked}.`;
  if (run.bad.length > 0) return `The log is damaged at ${run.bad.length} ${run.bad.length === 1 ? "position" : "positions"}. The rest is intact (${time}).`;
  return `The log is intact: ${checked} events, each in its position and unchanged (${time}).`;
}

function BadPositions({ bad }: { bad: readonly Bad[] }) {
  return (
    <ul class="bad-positions" aria-label="Damaged positions">
      {bad.map((each) => (
        <li key={each.position}>
          <a href={to("/audit", { entry: each.position })}>Position {each.position.toLocaleString("en")}</a>: <bdi>{each.reason}</bdi>
        </li>
      ))}
    </ul>
  );
}

function Background({ integrity: { tail, scrub, head } }: { integrity: Integrity }) {
  const bad = [tail, scrub].flatMap((each) => (each && each.badPosition !== null && each.badPosition !== undefined ? [{ position: each.badPosition, reason: each.reason ?? "" }] : []));
  return (
    <section aria-label="Verification in the background" class="run">
      {bad.length > 0 ? (
        <>
          <p class="verdict tone-bad">The log is damaged.</p>
          <BadPositions bad={bad.filter((each, index) => bad.findIndex((other) => other.position === each.position) === index)} />
        </>
      ) : tail ? (
        <p class="verdict tone-ok">
          {tail.position >= head ? "All" : `The first ${tail.position.toLocaleString("en")}`} of {head.toLocaleString("en")} events fit.
        </p>
      ) : (
        <p class="verdict tone-neutral">Not verified yet. The verification in the background begins within a minute.</p>
      )}
      <p class="faint">
        {tail && (
          <>
            New events were verified <Time at={tail.verifiedAt} as="relative" />, once a minute.{" "}
          </>
        )}
        {scrub && (
          <>
            Older events are verified repeatedly, a part each minute: {scrub.position === 0 ? "a round is complete" : `now at position ${scrub.position.toLocaleString("en")}`}.
          </>
        )}
      </p>
    </section>
  );
}
