import { useState } from "preact/hooks";
import { answered, api, dataOf, type MediaEvent } from "../../../kernel/api";
import { useQuery } from "../../../kernel/query";
import { may } from "../../../kernel/session";
import { PROVISION_STATES, stateWord } from "../../../kernel/states";
import { toast } from "../../../kernel/toasts";
import { Answered, Badge, Button, Confirm, EmptyState, Facts, JsonView, Panel, Time } from "../../../parts";
import type { TabProps } from "../EventPage";

interface Order {
  title: string;
  action: string;
  about: string;
  danger: boolean;
  send: () => Promise<unknown>;
}

/** The infrastructure of an Event: what is there of it, and its orders. */
export default function Provisioning({ event }: TabProps) {
  const [order, setOrder] = useState<Order | null>(null);
  const info = event.provisionInfo;
  const resources = useQuery(
    info === null ? null : `resources ${event.id} ${info.stateString}`,
    (signal) => dataOf(api.GET("/api/provision/resources/{eventId}", { params: { path: { eventId: event.id } }, signal })),
    { changes: { aggregates: ["provision"] } },
  );
  return (
    <Panel title="Infrastructure" actions={may("operator") && <Orders event={event} ask={setOrder} />}>
      <Facts
        facts={[
          ["Profile", event.infrastructureProfile && <bdi>{event.infrastructureProfile}</bdi>],
          ["State", info ? <Badge state={stateWord(PROVISION_STATES, info.state)} title={info.stateString} /> : "Never provisioned"],
          ["Provisioned", <Time at={info?.provisionedAt} />],
          ["Terminated", <Time at={info?.terminatedAt} />],
          ["To be provisioned", <Time at={event.scheduledProvisionAt} />],
          ["To be terminated", <Time at={event.scheduledTerminateAt} />],
          ["By itself", automatic(event)],
        ]}
      />
      {info !== null && (
        <Answered query={resources}>
          {(found) =>
            found.resources.length === 0 ? (
              <EmptyState title="It has no resources" />
            ) : (
              <>
                <h3 class="part-title">Resources</h3>
                <JsonView value={found.resources} label="Resources as JSON" />
              </>
            )
          }
        </Answered>
      )}
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
          <bdi>{event.title || "Without a title"}</bdi>. {order?.about}
        </p>
      </Confirm>
    </Panel>
  );
}

function automatic(event: MediaEvent): string {
  const said = [event.autoProvisionInfrastructure && "provisioned at its time", event.autoTerminateInfrastructure && "terminated at its time"].filter(Boolean);
  return said.length > 0 ? said.join(", ") : "Nothing";
}

function Orders({ event, ask }: { event: MediaEvent; ask: (order: Order) => void }) {
  if (event.infrastructureProfileId === null && event.provisionInfo === null) return null;
  const path = { eventId: event.id };
  const orders: (Order & { shown: boolean })[] = [
    {
      title: "Provision the infrastructure",
      action: "Provision",
      about: "What its profile says is made.",
      danger: false,
      shown: event.infrastructureProfileId !== null && event.provisionInfo?.state !== 1 && event.provisionInfo?.state !== 5,
      send: () => answered(api.POST("/api/provision/{eventId}", { params: { path } })),
    },
    {
      title: "Terminate the infrastructure",
      action: "Terminate",
      about: "All its machines go away. What is being made is cancelled.",
      danger: true,
      shown: event.provisionInfo !== null && event.provisionInfo.state !== 7 && event.provisionInfo.state !== 5,
      send: () => answered(api.DELETE("/api/provision/{eventId}", { params: { path } })),
    },
    {
      title: "Reset the infrastructure",
      action: "Reset",
      about: "The Event counts as not provisioned. The termination of what there is is tried beside.",
      danger: true,
      shown: event.provisionInfo !== null && event.provisionInfo.state !== 1 && event.provisionInfo.state !== 5,
      send: () => answered(api.DELETE("/api/provision/reset/{eventId}", { params: { path } })),
    },
  ];
  return (
    <span class="page-actions">
      {orders
        .filter((each) => each.shown)
        .map((each) => (
          <Button key={each.action} kind={each.danger ? "quiet" : "plain"} onClick={() => ask(each)}>
            {each.action}
          </Button>
        ))}
    </span>
  );
}
