import type { Schemas } from "../../kernel/api";
import { stateWord, type StateWord, type Tone } from "../../kernel/states";
import { duration, now } from "../../kernel/time";
import { Badge, Time } from "../../parts";
import { size } from "../jobs/progress";
import { places } from "./graph";

type JobTask = Schemas["JobTask"];
type Run = Schemas["TaskRunRecord"];

const of = (word: string, tone: Tone): StateWord => ({ word, tone });
export const TASK_STATES: Readonly<Record<string, StateWord>> = {
  waiting: of("Waits", "neutral"),
  ready: of("Ready", "ready"),
  running: of("Running", "busy"),
  publishing: of("Publishing", "busy"),
  completed: of("Completed", "ok"),
  failed: of("Failed", "bad"),
  cancelled: of("Not run", "off"),
};
const OUTCOMES: Readonly<Record<string, StateWord>> = {
  running: of("Running", "busy"),
  completed: of("Completed", "ok"),
  failed: of("Failed", "bad"),
  lost: of("Worker lost", "bad"),
  interrupted: of("Given back", "neutral"),
  broken: of("Stopped with the job", "off"),
};
const WIDTH = 168;
const HEIGHT = 56;
const GAP = 40;
const PICTURES = /\.(jpe?g|png|gif|webp)$/i;
const MOST_PICTURES = 6;

/** The tasks and their dependencies as a picture with an equivalent text. */
export function TaskGraph({ tasks }: { tasks: readonly JobTask[] }) {
  const at = places(tasks);
  const x = (id: number): number => at.get(id)!.column * (WIDTH + GAP);
  const y = (id: number): number => at.get(id)!.row * (HEIGHT + 14);
  const all = [...at.values()];
  const width = Math.max(0, ...all.map((place) => place.column)) * (WIDTH + GAP) + WIDTH + 4;
  const height = Math.max(0, ...all.map((place) => place.row)) * (HEIGHT + 14) + HEIGHT + 4;
  const words = tasks.map((task) => `${task.name}: ${stateWord(TASK_STATES, task.state).word}`).join(", ");
  return (
    <div class="task-graph" tabIndex={0} role="group" aria-label="Tasks as a picture">
      <svg width={width} height={height} viewBox={`-2 -2 ${width} ${height}`} role="img" aria-label={words}>
        {tasks.flatMap((task) =>
          task.after
            .filter((before) => at.has(before))
            .map((before) => {
              const [fromX, fromY, toX, toY] = [x(before) + WIDTH, y(before) + HEIGHT / 2, x(task.task_id), y(task.task_id) + HEIGHT / 2];
              return <path key={`${before} ${task.task_id}`} class="task-edge" d={`M${fromX} ${fromY} H${toX - GAP / 2} V${toY} H${toX}`} />;
            }),
        )}
        {tasks.map((task) => (
          <TaskBox key={task.task_id} task={task} x={x(task.task_id)} y={y(task.task_id)} />
        ))}
      </svg>
    </div>
  );
}

function TaskBox({ task, x, y }: { task: JobTask; x: number; y: number }) {
  const { word, tone } = stateWord(TASK_STATES, task.state);
  const isUnderWay = task.state === "running" || task.state === "publishing";
  const part = task.state === "completed" ? 1 : isUnderWay ? task.fraction : 0;
  const said = isUnderWay ? `${word} ${Math.floor(task.fraction * 100)} %` : task.attempts > 1 ? `${word}, attempt ${task.attempts}` : word;
  return (
    <g class={`task-box tone-${tone}`} transform={`translate(${x} ${y})`}>
      <title>{`${task.name}: ${said}${task.message ? `. ${task.message}` : ""}`}</title>
      <rect class="task-back" width={WIDTH} height={HEIGHT} rx="6" />
      <rect class="task-part" x="0" y={HEIGHT - 5} width={WIDTH * part} height="5" rx="2" />
      <text x="10" y="22" class="task-name">
        {task.name.length > 19 ? `${task.name.slice(0, 18)}…` : task.name}
      </text>
      <text x="10" y="40" class="task-state">
        {said}
      </text>
    </g>
  );
}

/** All runs of all tasks, the latest first. */
export function Attempts({ tasks }: { tasks: readonly JobTask[] }) {
  const runs = tasks
    .flatMap((task) => task.runs.map((run) => ({ task, run })))
    .sort((one, other) => Date.parse(other.run.started_at) - Date.parse(one.run.started_at));
  if (runs.length === 0) return <p class="faint">No task has been started yet.</p>;
  return (
    <ol class="attempts" tabIndex={0} aria-label="Attempts, the latest first">
      {runs.map(({ task, run }) => (
        <Attempt key={`${task.task_id} ${run.started_at} ${run.attempt}`} task={task} run={run} />
      ))}
    </ol>
  );
}

function Attempt({ task, run }: { task: JobTask; run: Run }) {
  const took = (run.ended_at ? Date.parse(run.ended_at) : now.value) - Date.parse(run.started_at);
  const said = run === task.runs[task.runs.length - 1] ? task.message : "";
  return (
    <li>
      <div class="attempt-line">
        <Badge state={stateWord(OUTCOMES, run.outcome)} />
        <strong>{task.name}</strong>
        <span class="faint">attempt {run.attempt}</span>
        <Time at={run.started_at} />
        <span>{took < 1000 ? `${Math.max(0, took)} ms` : duration(took)}</span>
        <span class="faint worker" title={run.worker}>
          {run.worker}
        </span>
      </div>
      {run.error && (
        <p class="attempt-error">
          <bdi>{run.error}</bdi>
        </p>
      )}
      {!run.error && said && (
        <p class="faint attempt-said">
          <bdi>{said}</bdi>
        </p>
      )}
      {run.retry_at && Date.parse(run.retry_at) > now.value && (
        <p class="faint">
          The next attempt is <Time at={run.retry_at} as="relative" />.
        </p>
      )}
    </li>
  );
}

/** The files that the tasks published, and their pictures. */
export function Files({ tasks }: { tasks: readonly JobTask[] }) {
  const files = tasks.flatMap((task) => (task.state === "completed" ? task.files.filter((file) => !file.path.startsWith(".")) : []));
  if (files.length === 0) return <p class="faint">No files have been published yet.</p>;
  const pictures = files.filter((file) => PICTURES.test(file.path)).slice(0, MOST_PICTURES);
  return (
    <>
      {pictures.length > 0 && (
        <div class="job-pictures">
          {pictures.map((file) => (
            <a key={file.path} href={address(file.path)} target="_blank" rel="noreferrer">
              <img src={address(file.path)} alt={`Picture ${file.path}`} loading="lazy" />
            </a>
          ))}
        </div>
      )}
      <ul class="job-files" tabIndex={0} aria-label="Published files">
        {files.map((file) => (
          <li key={file.path}>
            <a href={address(file.path)} target="_blank" rel="noreferrer">
              <bdi>{file.path}</bdi>
            </a>
            <span class="faint">{size(file.size)}</span>
          </li>
        ))}
      </ul>
    </>
  );
}

const address = (path: string): string => `/media/${path.split("/").map(encodeURIComponent).join("/")}`;
