import { Button, Progress } from "../../parts";
import type { Run } from "./runs";

/** How far a run is and what each of its writes said, failures first. */
export function RunReport({ run }: { run: Run }) {
  if (run.total === 0) return null;
  const failed = run.results.filter((each) => each.problem !== null);
  const done = run.results.filter((each) => each.problem === null);
  return (
    <div class="run">
      {run.running && (
        <div class="page-line">
          <Progress value={run.results.length} max={run.total} label="Written" />
          <Button onClick={run.stop}>Stop</Button>
        </div>
      )}
      {!run.running && (
        <p role="status">
          {done.length} done, {failed.length} failed{run.stopped ? `, ${run.total - run.results.length} not tried: it was stopped` : ""}.
        </p>
      )}
      <ul class="run-list" tabIndex={0} aria-label="Result of each row">
        {[...failed, ...done].slice(0, 500).map((each, index) => (
          <li key={index} class={each.problem === null ? "" : "wrong"}>
            <bdi>{each.what.slice(0, 200)}</bdi>
            {each.problem !== null && ` – ${each.problem}`}
          </li>
        ))}
      </ul>
    </div>
  );
}
