import { useState } from "preact/hooks";
import { answered, api, dataOf, found, ifMatch, type Schemas } from "../../kernel/api";
import { clock } from "../../kernel/time";
import { toast, toastFailure } from "../../kernel/toasts";
import { Badge, Button, Confirm, Drawer, Field, FormError, useSubmit } from "../../parts";
import { TARGETS, configurationOf, targetOf, written } from "./targets";

export type Destination = Schemas["Destination"];

export interface Trial {
  said: Schemas["Activation"];
  at: number;
}

interface DestinationDrawerProps {
  /** null: a new one. */
  destination: Destination | null;
  editable: boolean;
  trial: Trial | undefined | null;
  onTrial: (id: string, said: Trial["said"]) => void;
  onClose: () => void;
  onSaved: (id: string) => void;
}

/** One destination: its configuration, whose secrets can be written and never read, and whether it can be reached. */
export function DestinationDrawer({ destination, editable, trial, onTrial, onClose, onSaved }: DestinationDrawerProps) {
  const before = configurationOf(destination?.configJson ?? "{}");
  const [name, setName] = useState(destination?.name ?? "");
  const [number, setNumber] = useState(String(destination?.target ?? 5));
  const [typed, setTyped] = useState<Record<string, string>>(() => textsOf(before));
  const [asks, setAsks] = useState(false);
  const [trying, setTrying] = useState(false);
  const target = targetOf(Number(number));
  const isOther = destination !== null && target.number !== destination.target;
  const form = useSubmit(async () => {
    const body = { name, target: target.number as never, destinationJson: JSON.stringify(written(isOther ? {} : before, typed, target)) };
    const saved = destination === null ? await dataOf(api.POST("/api/media/destination/", { body: body as never })) : await changed(destination, body);
    toast(saved.active ? "Destination saved" : "Destination saved. Try it to make it active.");
    onSaved(saved.id);
  });
  const attempt = async (): Promise<void> => {
    setTrying(true);
    await dataOf(api.PUT("/api/media/destination/activate/{id}", { params: { path: { id: destination!.id } } }))
      .then(
        (said) => (onTrial(destination!.id, said), onSaved(destination!.id)),
        (thrown: unknown) => toastFailure("Not tried", thrown),
      )
      .finally(() => setTrying(false));
  };
  const deactivate = (): void =>
    void answered(api.PUT("/api/media/destination/active/{id}", { params: { path: { id: destination!.id }, query: { active: false } } })).then(
      () => onSaved(destination!.id),
      (thrown: unknown) => toastFailure("Not changed", thrown),
    );
  return (
    <Drawer title={destination === null ? "New destination" : "Destination"} open onClose={onClose}>
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
        {target.members.length === 0 && <p class="hint">Only a package of others publishes there. Its configuration is set over the API.</p>}
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
          onSaved("");
        }}>
          <p>
            <bdi>{destination.name.slice(0, 200)}</bdi> goes with its publications. What is at the target stays there.
          </p>
        </Confirm>
      )}
    </Drawer>
  );
}

/** Of the version that was shown. */
async function changed(shown: Destination, body: object): Promise<Destination> {
  const params = { path: { id: shown.id } };
  const { data, etag } = await found(api.GET("/api/media/destination/{id}", { params }));
  if (data.name !== shown.name || data.configJson !== shown.configJson || data.target !== shown.target) throw new Error("Somebody else was faster. Open the destination again.");
  return dataOf(api.PUT("/api/media/destination/{id}", { params, body: body as never, headers: ifMatch(etag) }));
}

function textsOf(configuration: Record<string, unknown>): Record<string, string> {
  return Object.fromEntries(Object.entries(configuration).filter(([, value]) => typeof value === "string" || typeof value === "number").map(([name, value]) => [name, String(value)]));
}
