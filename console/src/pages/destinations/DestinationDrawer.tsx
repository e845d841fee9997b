import { useState } from "preact/hooks";
import { Failure, answered, api, dataOf, found, ifMatch, type Schemas } from "../../kernel/api";
import { useHere } from "../../kernel/here";
import { clock } from "../../kernel/time";
import { toast, toastFailure } from "../../kernel/toasts";
import { Badge, Button, ChangedMeanwhile, Confirm, Drawer, Field, FormError, useBegun, useSubmit } from "../../parts";
import { TARGETS, configurationOf, targetOf, written } from "./targets";

export type Destination = Schemas["Destination"];

export interface Trial {
  said: Schemas["Activation"];
  at: number;
}

interface DestinationDrawerProps {
  /** The destination; null for a new one. */
  destination: Destination | null;
  editable: boolean;
  trial: Trial | undefined | null;
  onTrial: (id: string, said: Trial["said"]) => void;
  onClose: () => void;
  onSaved: (id: string) => void;
}

/** A destination: its configuration, whose secrets can be written but never read, and a connection test. */
export function DestinationDrawer(props: DestinationDrawerProps) {
  const [turn, setTurn] = useState(0);
  return (
    <Drawer title={props.destination === null ? "New destination" : "Destination"} open onClose={props.onClose}>
      <Form key={turn} {...props} onAgain={() => setTurn(turn + 1)} />
    </Drawer>
  );
}

function Form({ destination, editable, trial, onTrial, onSaved, onAgain }: DestinationDrawerProps & { onAgain: () => void }) {
  const begun = useBegun(destination, fieldsOf);
  const here = useHere();
  const done = (id: string): void => void (here() && onSaved(id));
  const before = configurationOf(begun.record?.configJson ?? "{}");
  const [name, setName] = useState(destination?.name ?? "");
  const [number, setNumber] = useState(String(destination?.target ?? 5));
  const [typed, setTyped] = useState<Record<string, string>>(() => textsOf(before));
  const [asks, setAsks] = useState(false);
  const [trying, setTrying] = useState(false);
  const target = targetOf(Number(number));
  const isOther = begun.record !== null && target.number !== begun.record.target;
  const form = useSubmit(async () => {
    const body = { name, target: target.number as never, destinationJson: JSON.stringify(written(isOther ? {} : before, typed, target)) };
    const saved = begun.record === null ? await dataOf(api.POST("/api/media/destination/", { body: body as never })) : await changed(begun.record, body);
    begun.saved(saved);
    toast(saved.active ? "Destination saved" : "Destination saved. Test it to make it active.");
    done(saved.id);
  });
  const attempt = async (): Promise<void> => {
    setTrying(true);
    await dataOf(api.PUT("/api/media/destination/activate/{id}", { params: { path: { id: destination!.id } } }))
      .then(
        (said) => (onTrial(destination!.id, said), done(destination!.id)),
        (thrown: unknown) => toastFailure("Not tried", thrown),
      )
      .finally(() => setTrying(false));
  };
  const deactivate = (): void =>
    void answered(api.PUT("/api/media/destination/active/{id}", { params: { path: { id: destination!.id }, query: { active: false } } })).then(
      () => done(destination!.id),
      (thrown: unknown) => toastFailure("Not changed", thrown),
    );
  return (
    <>
      <form class="destination" onSubmit={form.submit}>
        {destination && (
          <div class="page-line">
            <Badge state={destination.active ? { word: "Active", tone: "ok" } : { word: "Not active", tone: "off" }} />
            {editable && <Button busy={trying} onClick={() => void attempt()}>Try it</Button>}
            {editable && destination.active && <Button onClick={deactivate}>Make it inactive</Button>}
          </div>
        )}
        {trial && (
          <p class={trial.said.actionRequired ? "form-error" : "hint"} role="status">
            {clock(new Date(trial.at))} {trial.said.actionTitle}: {trial.said.actionDescription}
          </p>
        )}
        <Field label="Name" name="name" value={name} onInput={setName} required disabled={!editable} failure={form.failure} autoComplete="off" />
        <Field label="Target" name="target" value={number} onInput={setNumber} options={TARGETS.map((each) => [String(each.number), each.word] as const)} disabled={!editable} failure={form.failure} />
        {target.members.map(({ name: member, label, secret, required, hint }) => (
          <Field
            key={`${number} ${member}`}
            label={label}
            name={`destinationJson.${member}`}
            type={secret ? "password" : "text"}
            value={typed[member] ?? ""}
            onInput={(value) => setTyped({ ...typed, [member]: value })}
            required={Boolean(required) && (!secret || destination === null || isOther)}
            disabled={!editable}
            hint={secret && destination && !isOther ? "Stored and never shown. Empty keeps it." : hint}
            failure={form.failure}
            autoComplete={secret ? "new-password" : "off"}
          />
        ))}
        {target.members.length === 0 && <p class="hint">Only an external package publishes there. Its configuration is set through the API.</p>}
        {begun.isOld && <ChangedMeanwhile onAgain={onAgain} />}
        <FormError failure={form.failure} shown={["name", "target", ...target.members.map((each) => `destinationJson.${each.name}`)]} />
        {editable ? (
          <div class="page-actions">
            <Button type="submit" kind="primary" busy={form.busy}>{destination === null ? "Add" : "Save"}</Button>
            {destination && <Button onClick={() => setAsks(true)}>Delete</Button>}
          </div>
        ) : (
          <p class="hint">To change destinations you need the role operator or admin.</p>
        )}
      </form>
      {destination && (
        <Confirm title="Delete this destination?" action="Delete" danger open={asks} onClose={() => setAsks(false)} onConfirm={async () => {
          const params = { path: { id: destination.id } };
          const { etag } = await found(api.GET("/api/media/destination/{id}", { params }));
          await answered(api.DELETE("/api/media/destination/{id}", { params, headers: ifMatch(etag) }));
          toast("Destination deleted");
          done("");
        }}>
          <p>
            <bdi>{destination.name.slice(0, 200)}</bdi> is deleted with its publications. Published files stay at the target.
          </p>
        </Confirm>
      )}
    </>
  );
}

/** The fields of the form. */
const fieldsOf = (destination: Destination | null): string => JSON.stringify(destination && [destination.name, destination.target, destination.configJson]);

/** Saves the changes if the destination still has the version that the form began with. */
async function changed(begun: Destination, body: object): Promise<Destination> {
  const params = { path: { id: begun.id } };
  const { data, etag } = await found(api.GET("/api/media/destination/{id}", { params }));
  if (fieldsOf(data) !== fieldsOf(begun)) throw new Failure(412, "The destination was changed meanwhile: nothing was saved. Check its current state.");
  return dataOf(api.PUT("/api/media/destination/{id}", { params, body: body as never, headers: ifMatch(etag) }));
}

function textsOf(configuration: Record<string, unknown>): Record<string, string> {
  return Object.fromEntries(Object.entries(configuration).filter(([, value]) => typeof value === "string" || typeof value === "number").map(([name, value]) => [name, String(value)]));
}
