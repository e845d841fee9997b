import type { Run } from "../kernel/runs";
import { Button } from "./Button";
import { Progress } from "./Small";

const MOST = 500;

/** The progress of a run and the results of its writes, failures first. */
export function RunReport({ run }: { run: Run }) {
  const { name, total, results, running, stopped } = run.state;
  if (total === 0) return null;
  const failed = results.filter((each) => each.problem !== null);
  const done = results.filter((each) => each.problem === null);
  return (
    <section class="run-report" aria-label={name}>
      {running ? (
        <div class="page-line">
          <Progress value={results.length} max={total} label={name} />
          <Button onClick={() => run.stop()}>Stop</Button>
        </div>
      ) : (
        <div class="page-line">
          <p role="status">
            {name}: {done.length} done, {failed.length} failed{stopped ? `, ${total - results.length} skipped because it was stopped` : ""}.
          </p>
          <Button kind="quiet" icon="close" label="Forget it" onClick={() => run.reset()} />
        </div>
      )}
      {results.length > 0 && (
        <ul class="run-list" tabIndex={0} aria-label="Results">
          {[...failed, ...done].slice(0, MOST).map((each, index) => (
            <li key={index} class={each.problem === null ? "" : "wrong"}>
              <bdi>{each.what.slice(0, 200)}</bdi>
              {each.problem !== null && ` – ${each.problem}`}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

/** The runs of other pages. */
export function RunAway({ run }: { run: Run }) {
  const { name, total, results } = run.state;
  return (
    <div class="toast tone-busy">
      <div>
        <p>{name}</p>
        <Progress value={results.length} max={total} label={name} />
      </div>
      <Button kind="quiet" onClick={() => run.stop()}>
        Stop
      </Button>
    </div>
  );
}
