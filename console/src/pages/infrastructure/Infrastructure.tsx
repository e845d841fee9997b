import { useState } from "preact/hooks";
import { answered, api, dataOf, type MediaEvent } from "../../kernel/api";
import { useQuery } from "../../kernel/query";
import { may } from "../../kernel/session";
import { PROVISION_STATES, stateWord } from "../../kernel/states";
import { toast } from "../../kernel/toasts";
import { Answered, Badge, Button, Confirm, EmptyState, Facts, JsonView, Time } from "../../parts";
import { Happened } from "./Happened";
import "./infrastructure.css";

interface Order {
  title: string;
  action: string;
  about: string;
  danger: boolean;
  send: () => Promise<unknown>;
}

type Resource = Readonly<Record<string, unknown>>;

/** The infrastructure of an Event: its resources, its states, and its failures. */
export function Infrastructure({ event }: { event: MediaEvent }) {
  const info = event.provisionInfo;
  const resources = useQuery(
    info === null ? null : `resources ${event.id} ${info.stateString}`,
    (signal) => dataOf(api.GET("/api/provision/resources/{eventId}", { params: { path: { eventId: event.id } }, signal })),
    { changes: { aggregates: ["provision"], ids: info === null ? [] : [info.id] } },
  );
  return (
    <div class="infrastructure">
      <Facts
        facts={[
          ["Profile", event.infrastructureProfile && <bdi>{event.infrastructureProfile}</bdi>],
          ["State", info ? <Badge state={stateWord(PROVISION_STATES, info.state)} title={info.stateString} /> : "Never provisioned"],
          ["Key", info && <bdi>{info.infrastructureKey}</bdi>],
          ["Provisioned", <Time at={info?.provisionedAt} />],
          ["Terminated", <Time at={info?.terminatedAt} />],
          ["To be provisioned", <Time at={event.scheduledProvisionAt} />],
          ["To be terminated", <Time at={event.scheduledTerminateAt} />],
          ["By itself", automatic(event)],
        ]}
      />
      {info !== null && (
        <>
          <Happened event={event} info={info} />
          <h3 class="part-title">Resources</h3>
          <Answered query={resources}>{(found) => (found.resources.length === 0 ? <EmptyState title="It has no resources" /> : <Resources of={found.resources} />)}</Answered>
        </>
      )}
    </div>
  );
}

function Resources({ of }: { of: readonly Resource[] }) {
  const [whole, setWhole] = useState(false);
  const text = (value: unknown): string => (typeof value === "string" ? value : "");
  return (
    <>
      <ul class="resources">
        {of.map((each, index) => (
          <li key={index}>
            <bdi>{text(each["name"])}</bdi>
            <span class="faint">{text(each["type"])}</span>
            <bdi>{text(each["ipAddress"]) || text(each["dns"])}</bdi>
          </li>
        ))}
      </ul>
      <p>
        <Button kind="quiet" onClick={() => setWhole(!whole)}>
          {whole ? "Without the JSON" : "All of it as JSON"}
        </Button>
      </p>
      {whole && <JsonView value={of} label="Resources as JSON" />}
    </>
  );
}

export function automatic(event: MediaEvent): string {
  const said = [event.autoProvisionInfrastructure && "provisioned at its time", event.autoTerminateInfrastructure && "terminated at its time"].filter(Boolean);
  return said.length > 0 ? said.join(", ") : "Nothing";
}

/** Buttons for the actions on the infrastructure of an Event in its state. Each asks for confirmation. */
export function Orders({ event }: { event: MediaEvent }) {
  const [order, setOrder] = useState<Order | null>(null);
  if (event.infrastructureProfileId === null && event.provisionInfo === null) return null;
  return (
    <span class="page-actions">
      {ordersOf(event).map((each) => (
        <Button key={each.action} kind={each.danger ? "quiet" : "plain"} onClick={() => setOrder(each)}>
          {each.action}
        </Button>
      ))}
      <Confirm
        title={order?.title ?? ""}
        action={order?.action ?? ""}
        danger={order?.danger ?? false}
        open={order !== null}
        onClose={() => setOrder(null)}
        onConfirm={async () => {
          await order!.send();
          toast(`${order!.action}: ordered`, "ok", event.title.slice(0, 100));
        }}
      >
        <p>
          <bdi>{event.title.slice(0, 300) || "Without a title"}</bdi>. {order?.about}
        </p>
      </Confirm>
    </span>
  );
}

function ordersOf(event: MediaEvent): readonly Order[] {
  if (!may("operator")) return [];
  const path = { eventId: event.id };
  const state = event.provisionInfo?.state;
  const orders: (Order & { shown: boolean })[] = [
    {
      title: "Provision the infrastructure",
      action: "Provision",
      about: "The resources of its profile are provisioned.",
      danger: false,
      shown: event.infrastructureProfileId !== null && state !== 1 && state !== 5,
      send: () => answered(api.POST("/api/provision/{eventId}", { params: { path } })),
    },
    {
      title: state === 1 ? "Cancel the provisioning" : "Terminate the infrastructure",
      action: state === 1 ? "Cancel" : "Terminate",
      about: state === 1 ? "The provisioning is cancelled, and existing resources are terminated." : "All its resources are terminated.",
      danger: true,
      shown: state !== undefined && state !== 7 && state !== 5,
      send: () => answered(api.DELETE("/api/provision/{eventId}", { params: { path } })),
    },
    {
      title: "Reset the infrastructure",
      action: "Reset",
      about: "The Event counts as not provisioned. Existing resources are terminated in the background if possible.",
      danger: true,
      shown: state !== undefined && state !== 1 && state !== 5,
      send: () => answered(api.DELETE("/api/provision/reset/{eventId}", { params: { path } })),
    },
  ];
  return orders.filter((each) => each.shown);
}
