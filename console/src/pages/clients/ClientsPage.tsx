import "./clients.css";
import { useState } from "preact/hooks";
import { Failure, answered, api, dataOf, found, ifMatch, type Schemas } from "../../kernel/api";
import { useHere } from "../../kernel/here";
import { useQuery } from "../../kernel/query";
import { useQueryState } from "../../kernel/router";
import type { Role } from "../../kernel/session";
import { duration, now } from "../../kernel/time";
import { toast } from "../../kernel/toasts";
import { Answered, Badge, Button, ChangedMeanwhile, Check, Confirm, CopyButton, DataTable, Dialog, Drawer, EmptyState, Facts, Field, FilterBar, FormError, PageHead, Panel, Time, useBegun, useSubmit } from "../../parts";
import type { Column } from "../../parts";
import { ContentKeys } from "./ContentKeys";

type Client = Schemas["Client"];
type ApiKey = Schemas["ApiKey"];
const ROLES: readonly (readonly [Role, string])[] = [
  ["viewer", "Reads Events, jobs and their details"],
  ["operator", "Reads and changes them, and requests its own content keys"],
  ["auditor", "Reads them, the logs and the audit"],
  ["keys", "Requests its own content keys, and nothing else"],
  ["admin", "Does everything, and manages clients"],
];
const DAY = 86_400_000;
/** Days after which an unused key is listed. */
const UNUSED = 90 * DAY;
const OVERLAPS = [
  ["86400", "In 1 day"],
  ["3600", "In 1 hour"],
  ["604800", "In 7 days"],
  ["0", "At once"],
  ["", "Never"],
] as const;

interface Shown {
  title: string;
  key: string;
}

/** Clients, their roles and their API keys. */
export default function ClientsPage() {
  const { values, set } = useQueryState();
  const [adding, setAdding] = useState(false);
  const [shown, setShown] = useState<Shown | null>(null);
  const clients = useQuery("clients", (signal) => dataOf(api.GET("/api/client/", { signal })), { changes: { aggregates: ["client"] }, every: 60_000 });
  const search = (values["search"] ?? "").toLowerCase();
  return (
    <>
      <PageHead title="Clients and keys" actions={<Button kind="primary" onClick={() => setAdding(true)}>Add client</Button>} />
      <FilterBar filters={[{ name: "search", label: "Search", kind: "search" }]} />
      <Answered query={clients}>
        {(all) => {
          const open = all.find((each) => each.name === values["client"]);
          return (
            <>
              <Unused clients={all} onOpen={(name) => set({ client: name })} />
              <DataTable
                caption="Clients"
                columns={COLUMNS}
                rows={all.filter((each) => each.name.toLowerCase().includes(search) || each.roles.some((role) => role.includes(search)))}
                rowKey={(client) => client.name}
                onRow={(client) => set({ client: client.name })}
                stale={clients.stale.value}
                empty={<EmptyState title="No clients">None match the search.</EmptyState>}
              />
              {open && <ClientDrawer key={open.name} client={open} onClose={() => set({ client: "" })} onKey={setShown} onDone={clients.refresh} />}
            </>
          );
        }}
      </Answered>
      <ContentKeys />
      {adding && <AddClient onClose={() => setAdding(false)} onKey={(key) => (setAdding(false), setShown(key), clients.refresh())} />}
      {shown && <NewKey shown={shown} onClose={() => setShown(null)} />}
    </>
  );
}

const COLUMNS: readonly Column<Client>[] = [
  { key: "name", title: "Name", value: (client) => client.name, cell: (client) => <bdi>{client.name}</bdi> },
  { key: "roles", title: "Roles", value: (client) => client.roles.join(), cell: (client) => client.roles.join(", ") },
  { key: "keys", title: "Keys", width: "5rem", align: "end", value: (client) => working(client).length, cell: (client) => working(client).length },
  { key: "used", title: "Last use", width: "13rem", value: lastUse, cell: (client) => (lastUse(client) ? <Time at={lastUse(client)} /> : <span class="faint">never</span>) },
  { key: "created", title: "Added", width: "13rem", secondary: true, value: (client) => client.createdAt, cell: (client) => <Time at={client.createdAt} /> },
];

const expired = (key: ApiKey): boolean => key.expiresAt !== null && Date.parse(key.expiresAt) <= now.value;
const working = (client: Client): ApiKey[] => client.keys.filter((key) => !expired(key));

function lastUse(client: Client): string | null {
  return client.keys.map((key) => key.lastUsedAt).reduce((one, other) => ((other ?? "") > (one ?? "") ? other : one), null);
}

function isUnused(key: ApiKey): boolean {
  return !expired(key) && now.value - Date.parse(key.lastUsedAt ?? key.createdAt) > UNUSED;
}

/** Unused keys, which are a risk without a benefit. */
function Unused({ clients, onOpen }: { clients: readonly Client[]; onOpen: (name: string) => void }) {
  const unused = clients.flatMap((client) => client.keys.filter(isUnused).map((key) => ({ client, key })));
  if (unused.length === 0) return null;
  return (
    <Panel title={`${unused.length} ${unused.length === 1 ? "key was" : "keys were"} not used for 90 days`}>
      <ul class="unused">
        {unused.map(({ client, key }) => (
          <li key={key.keyId}>
            <Button kind="quiet" onClick={() => onOpen(client.name)}>{client.name}</Button> <code>{key.keyId}</code> <KeyUse of={key} />
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function KeyUse({ of }: { of: ApiKey }) {
  return of.lastUsedAt ? <Time at={of.lastUsedAt} /> : <span class="faint">never used</span>;
}

interface ClientDrawerProps {
  client: Client;
  onClose: () => void;
  onKey: (shown: Shown) => void;
  onDone: () => void;
}

/** A client: its roles, its keys, and their actions. */
function ClientDrawer({ client, onClose, onKey, onDone }: ClientDrawerProps) {
  const [turn, setTurn] = useState(0);
  const here = useHere();
  const [asks, setAsks] = useState<ApiKey | "delete" | null>(null);
  const path = { name: client.name };
  const etag = async (): Promise<Record<string, string>> => ifMatch((await found(api.GET("/api/client/{name}", { params: { path } }))).etag);
  return (
    <Drawer title={`Client ${client.name}`} open onClose={onClose}>
      <div class="client">
        <Facts facts={[["Added", <Time at={client.createdAt} />], ["Last use", lastUse(client) && <Time at={lastUse(client)} />]]} />
        <Rights key={turn} client={client} onDone={onDone} onDelete={() => setAsks("delete")} onAgain={() => setTurn(turn + 1)} />
        <h3>API keys</h3>
        <ul class="keys-of">
          {client.keys.map((key) => (
            <li key={key.keyId}>
              <div>
                <code>{key.keyId}</code> <KeyState of={key} />
                <p class="faint">
                  Issued <Time at={key.createdAt} />. Last use: <KeyUse of={key} />.{" "}
                  {key.expiresAt && !expired(key) && `Ends in ${duration(Date.parse(key.expiresAt) - now.value)}.`}
                </p>
              </div>
              <Button label={`Revoke ${key.keyId}`} onClick={() => setAsks(key)}>Revoke</Button>
            </li>
          ))}
        </ul>
        <Rotate client={client} onKey={(shown) => (onDone(), onKey(shown))} />
      </div>
      <Confirm title={`Delete the client ${client.name}?`} action="Delete" danger open={asks === "delete"} onClose={() => setAsks(null)} onConfirm={async () => {
        await answered(api.DELETE("/api/client/{name}", { params: { path }, headers: await etag() }));
        toast("Client deleted");
        if (here()) onClose();
        onDone();
      }}>
        <p>Its {client.keys.length} {client.keys.length === 1 ? "key stops" : "keys stop"} working immediately.</p>
      </Confirm>
      <Confirm title="Revoke this key?" action="Revoke" danger open={asks !== null && asks !== "delete"} onClose={() => setAsks(null)} onConfirm={async () => {
        const { keyId } = asks as ApiKey;
        await answered(api.DELETE("/api/client/{name}/keys/{keyId}", { params: { path: { ...path, keyId } } }));
        toast("Key revoked");
        onDone();
      }}>
        <p>
          <code>{typeof asks === "object" && asks?.keyId}</code> of <bdi>{client.name}</bdi> stops working immediately for all its users.
        </p>
      </Confirm>
    </Drawer>
  );
}

const rightsOf = (client: Client): string => JSON.stringify([client.roles, client.trustActor]);

interface RightsProps {
  client: Client;
  onDone: () => void;
  onDelete: () => void;
  onAgain: () => void;
}

/** The permissions of a client. They are saved only if they have not changed since the form was opened. */
function Rights({ client, onDone, onDelete, onAgain }: RightsProps) {
  const begun = useBegun(client, rightsOf);
  const [roles, setRoles] = useState<readonly string[]>(client.roles);
  const [trusted, setTrusted] = useState(client.trustActor);
  const params = { path: { name: client.name } };
  const form = useSubmit(async () => {
    const read = await found(api.GET("/api/client/{name}", { params }));
    if (rightsOf(read.data) !== rightsOf(begun.record)) throw new Failure(412, "The client was changed meanwhile: nothing was saved. Check its current state.");
    begun.saved(await dataOf(api.PUT("/api/client/{name}", { params, body: { roles: [...roles] as Role[], trustActor: trusted }, headers: ifMatch(read.etag) })));
    toast("Client saved");
    onDone();
  });
  return (
    <form class="client" onSubmit={form.submit}>
      <Roles chosen={roles} onChoose={setRoles} />
      <Check label="Trusted to name its end user" hint="It may name the end user in the header X-Actor." checked={trusted} onChange={setTrusted} />
      {begun.isOld && <ChangedMeanwhile onAgain={onAgain} />}
      <FormError failure={form.failure} />
      <div class="page-actions">
        <Button type="submit" kind="primary" busy={form.busy} disabled={roles.length === 0}>Save</Button>
        <Button onClick={onDelete}>Delete client</Button>
      </div>
    </form>
  );
}

function KeyState({ of }: { of: ApiKey }) {
  if (expired(of)) return <Badge state={{ word: "Expired", tone: "off" }} />;
  if (of.expiresAt) return <Badge state={{ word: "Expires", tone: "warn" }} />;
  return <Badge state={isUnused(of) ? { word: "Unused", tone: "warn" } : { word: "Works", tone: "ok" }} />;
}

function Roles({ chosen, onChoose }: { chosen: readonly string[]; onChoose: (roles: readonly string[]) => void }) {
  return (
    <fieldset>
      <legend>Roles</legend>
      {ROLES.map(([role, about]) => (
        <Check key={role} label={role} hint={about} checked={chosen.includes(role)} onChange={(on) => onChoose(on ? [...chosen, role] : chosen.filter((each) => each !== role))} />
      ))}
    </fieldset>
  );
}

/** A new key. The other keys keep working for a while, so that no user is locked out. */
function Rotate({ client, onKey }: { client: Client; onKey: (shown: Shown) => void }) {
  const [after, setAfter] = useState<string>(OVERLAPS[0][0]);
  const form = useSubmit(async () => {
    const body = { expireOthersAfter: after === "" ? null : Number(after) };
    const issued = await dataOf(api.POST("/api/client/{name}/keys/", { params: { path: { name: client.name } }, body }));
    onKey({ title: `New key of ${client.name}`, key: issued.key ?? "" });
  });
  return (
    <form class="client" onSubmit={form.submit}>
      <Field label="The other keys expire" name="expireOthersAfter" value={after} options={OVERLAPS} onInput={setAfter} failure={form.failure} hint="Until then old and new keys work side by side." />
      <FormError failure={form.failure} shown={["expireOthersAfter"]} />
      <div class="page-actions">
        <Button type="submit" busy={form.busy}>Issue a new key</Button>
      </div>
    </form>
  );
}

function AddClient({ onClose, onKey }: { onClose: () => void; onKey: (shown: Shown) => void }) {
  const [name, setName] = useState("");
  const [roles, setRoles] = useState<readonly string[]>(["viewer"]);
  const form = useSubmit(async () => {
    const made = await dataOf(api.POST("/api/client/", { body: { name, roles: [...roles] as Role[], trustActor: false } }));
    onKey({ title: `First key of ${made.name}`, key: made.key ?? "" });
  });
  return (
    <Dialog title="Add client" open onClose={onClose}>
      <form class="client" onSubmit={form.submit}>
        <Field label="Name" name="name" value={name} onInput={setName} required autoFocus autoComplete="off" hint="1 to 64 of A-Z a-z 0-9 . _ -" failure={form.failure} />
        <Roles chosen={roles} onChoose={setRoles} />
        <FormError failure={form.failure} shown={["name"]} />
        <div class="page-actions">
          <Button type="submit" kind="primary" busy={form.busy} disabled={roles.length === 0}>Add</Button>
        </div>
      </form>
    </Dialog>
  );
}

/** Shows a new key once. It exists only in the memory of this page until the dialog is closed. */
function NewKey({ shown, onClose }: { shown: Shown; onClose: () => void }) {
  return (
    <Dialog title={shown.title} open onClose={onClose} actions={<Button kind="primary" onClick={onClose}>I have stored it</Button>}>
      <p>This key is shown once. Store it now: it cannot be shown again.</p>
      <p class="new-key">
        <code>{shown.key}</code>
        <CopyButton text={shown.key} label="Copy the key" />
      </p>
    </Dialog>
  );
}
