import "./submit.css";
import { useMemo, useRef, useState } from "preact/hooks";
import { Failure, NO_CLIENT, answered, api, asFailure, dataOf, type Schemas } from "../../kernel/api";
import { useQuery } from "../../kernel/query";
import { jobPath, to, useGo, useQueryState } from "../../kernel/router";
import { may } from "../../kernel/session";
import { toast } from "../../kernel/toasts";
import { Answered, Button, EmptyState, Field, FormError, JsonView, PageHead, Panel, useSubmit } from "../../parts";
import { fieldsOf, parametersOf, typed, withFields, type FormField } from "./schema";

type Workflow = Schemas["WorkflowDescription"];
type Texts = Readonly<Record<string, string>>;

const OPTIONS = ["job.priority", "job.run_at", "job.sempahore_url"];
const PRIORITIES = Array.from({ length: 10 }, (_, index) => [String(index + 1), `${index + 1}${index === 0 ? ", most urgent" : index === 4 ? ", as usual" : ""}`] as const);

/** Submits a job with a form that is generated from the workflow's description. */
export default function SubmitPage() {
  const workflows = useQuery("workflows", (signal) => dataOf(api.GET("/engine/workflows", { params: { header: NO_CLIENT }, signal })));
  return (
    <>
      <nav class="crumbs" aria-label="Breadcrumb">
        <a href={to("/jobs")}>Jobs</a>
      </nav>
      <PageHead title="New job" />
      {may("operator") ? (
        <Answered query={workflows}>{(found) => <Choice workflows={found} />}</Answered>
      ) : (
        <EmptyState title="You may not submit jobs">This needs the role operator or admin.</EmptyState>
      )}
    </>
  );
}

function Choice({ workflows }: { workflows: readonly Workflow[] }) {
  const { values, set } = useQueryState();
  const open = workflows.filter((each) => each.submitted_by === null);
  const chosen = open.find((each) => each.name === values["workflow"]);
  const closed = workflows.filter((each) => each.submitted_by !== null);
  return (
    <>
      <div class="workflows" role="radiogroup" aria-label="Workflow">
        {open.map((each) => (
          <button key={each.name} type="button" role="radio" aria-checked={each === chosen} class="workflow" onClick={() => set({ workflow: each.name })}>
            <strong>{each.name}</strong>
            <span class="faint">{each.description}</span>
          </button>
        ))}
      </div>
      {closed.length > 0 && (
        <p class="faint">
          Jobs of {closed.map((each) => `${each.name} (by a ${each.submitted_by})`).join(", ")} are submitted by the product itself.
        </p>
      )}
      {chosen ? <SubmitForm key={chosen.name} workflow={chosen} /> : <EmptyState title="Choose a workflow" />}
    </>
  );
}

function SubmitForm({ workflow }: { workflow: Workflow }) {
  const go = useGo();
  const fields = useMemo(() => fieldsOf(workflow.parameters), [workflow]);
  const [texts, setTexts] = useState<Texts>({});
  const [options, setOptions] = useState({ priority: "5", run_at: "", sempahore_url: "" });
  const read = parametersOf(fields, texts);
  const body = bodyOf(workflow.name, read.value, options);
  const key = useKeyOf(JSON.stringify(body));
  const form = useSubmit(async () => {
    if (read.problems.length > 0) throw new Failure(400, "Some values are invalid.", read.problems);
    try {
      const made = await answered(api.POST("/engine/job", { params: { header: NO_CLIENT }, body, headers: { "Idempotency-Key": key } }));
      toast(`Job ${made.data.id} is submitted`);
      go(jobPath(made.data.id));
    } catch (thrown) {
      throw withFields(asFailure(thrown));
    }
  });
  const set = (name: string, text: string): void => setTexts((before) => ({ ...before, [name]: text }));
  const shown = [...fields.map((field) => `parameters.${field.name}`), ...OPTIONS];
  return (
    <form class="submit" onSubmit={form.submit} noValidate>
      <div class="submit-fields">
        <Panel
          title="Parameters"
          actions={
            <Button kind="quiet" onClick={() => setTexts(Object.fromEntries(fields.filter((field) => field.example).map((field) => [field.name, field.example])))}>
              Fill in the example
            </Button>
          }
        >
          <div class="form-fields">
            {fields.map((field) => (
              <Parameter key={field.name} field={field} text={texts[field.name] ?? ""} onInput={(text) => set(field.name, text)} failure={form.failure} />
            ))}
          </div>
        </Panel>
        <Panel title="Time">
          <div class="form-fields">
            <Field
              label="Priority"
              name="job.priority"
              value={options.priority}
              options={PRIORITIES}
              onInput={(priority) => setOptions({ ...options, priority })}
              failure={form.failure}
            />
            <Field
              label="Not before"
              name="job.run_at"
              type="datetime-local"
              value={options.run_at}
              onInput={(run_at) => setOptions({ ...options, run_at })}
              hint="Your local time. Empty: as soon as possible."
              failure={form.failure}
            />
            <Field
              label="Gate"
              name="job.sempahore_url"
              type="url"
              value={options.sempahore_url}
              onInput={(sempahore_url) => setOptions({ ...options, sempahore_url })}
              hint="An address that must answer 2xx or 3xx before the job is queued. Empty: none."
              failure={form.failure}
            />
          </div>
        </Panel>
        <FormError failure={form.failure} shown={shown} />
        <div class="page-actions">
          <Button type="submit" kind="primary" busy={form.busy}>
            Submit the job
          </Button>
          <a class="button" href={to("/jobs")}>
            Back
          </a>
        </div>
      </div>
      <Panel title="Request">
        <p class="faint">
          <code>POST /engine/job</code>. Nothing is sent before you submit; a repeated request creates only one job.
        </p>
        <JsonView value={body} label="Request as JSON" />
        <ol class="submit-tasks" aria-label="Tasks">
          {workflow.tasks.map((task) => (
            <li key={task.id}>
              {task.name} <span class="faint">{`queue ${task.queue}${task.needs_network ? ", connects to other machines" : ""}`}</span>
            </li>
          ))}
        </ol>
      </Panel>
    </form>
  );
}

interface ParameterProps {
  field: FormField;
  text: string;
  onInput: (text: string) => void;
  failure: Failure | null;
}

function Parameter({ field, text, onInput, failure }: ParameterProps) {
  const initial = field.initial === null || field.initial === undefined ? "" : typed(field.initial, field.kind);
  const unless = initial && initial !== "false" ? ` ${initial} unless told.` : "";
  const kind = field.kind === "list" ? " One per line." : field.kind === "json" ? " As JSON." : "";
  const example = field.example && field.kind !== "flag" ? ` Such as ${field.example.replaceAll("\n", ", ").slice(0, 120)}` : "";
  const options =
    field.kind === "flag"
      ? ([["", initial === "true" ? "As usual: yes" : "As usual: no"], ["true", "Yes"], ["false", "No"]] as const)
      : field.kind === "choice"
        ? ([["", "–"], ...field.options.map((each) => [each, each] as const)] as const)
        : undefined;
  return (
    <Field
      label={field.required ? `${field.label} (required)` : field.label}
      name={`parameters.${field.name}`}
      value={text}
      onInput={onInput}
      {...(field.kind === "list" || field.kind === "json" ? { lines: 2 } : {})}
      {...(options ? { options } : {})}
      hint={`${field.about}${unless}${kind}${example}`}
      failure={failure}
      required={field.required}
    />
  );
}

function bodyOf(workflow: string, parameters: Record<string, unknown>, options: { priority: string; run_at: string; sempahore_url: string }): Schemas["SubmitJobRequest"] {
  const at = options.run_at ? new Date(options.run_at) : null;
  return {
    job: {
      workflow,
      priority: Number(options.priority),
      ...(at !== null && !Number.isNaN(at.getTime()) ? { run_at: at.toISOString() } : {}),
      ...(options.sempahore_url.trim() ? { sempahore_url: options.sempahore_url.trim() } : {}),
    },
    parameters,
  } as Schemas["SubmitJobRequest"];
}

/** The idempotency key: a request that is repeated after a lost answer has the same key, so it creates no second job. */
function useKeyOf(text: string): string {
  const kept = useRef({ text: "", key: "" });
  if (kept.current.text !== text) kept.current = { text, key: crypto.randomUUID() };
  return kept.current.key;
}
