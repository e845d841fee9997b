import "./destinations.css";
import { useState } from "preact/hooks";
import { api, dataOf } from "../../kernel/api";
import { useQuery } from "../../kernel/query";
import { useQueryState } from "../../kernel/router";
import { may } from "../../kernel/session";
import { clock, now } from "../../kernel/time";
import { Answered, Badge, Button, DataTable, EmptyState, PageHead, Tabs, type Column } from "../../parts";
import { DestinationDrawer, type Destination, type Trial } from "./DestinationDrawer";
import { PublishDialog } from "./PublishDialog";
import { Publications } from "./Publications";
import { targetOf } from "./targets";

const TABS = [
  { key: "destinations", title: "Destinations" },
  { key: "films", title: "Publications of films" },
  { key: "live", title: "Live publications" },
];

/** Destinations and publications. */
export default function DestinationsPage() {
  const { values, set } = useQueryState();
  const tab = TABS.some((each) => each.key === values["tab"]) ? values["tab"]! : "destinations";
  const editable = may("operator");
  const [publishing, setPublishing] = useState(false);
  return (
    <>
      <PageHead
        title="Destinations"
        actions={
          editable && (
            <>
              {tab === "destinations" && <Button onClick={() => set({ destination: "new" })}>Add destination</Button>}
              <Button kind="primary" onClick={() => setPublishing(true)}>
                Publish an Event
              </Button>
            </>
          )
        }
      />
      <Tabs label="What is shown" tabs={TABS} chosen={tab} onChoose={(next) => set({ tab: next, destination: "", publication: "" })} />
      {tab === "destinations" ? <List editable={editable} /> : <Publications key={tab} live={tab === "live"} editable={editable} />}
      {publishing && (
        <PublishDialog
          event={null}
          kind={tab === "live" ? "live" : "film"}
          onClose={() => setPublishing(false)}
          onDone={({ id, contentId, destinationId }, kind) => (setPublishing(false), set({ tab: kind === "live" ? "live" : "films", search: contentId, publication: id, destination: destinationId }))}
        />
      )}
    </>
  );
}

function List({ editable }: { editable: boolean }) {
  const { values, set } = useQueryState();
  const [trials, setTrials] = useState<Readonly<Record<string, Trial>>>({});
  const all = useQuery("destinations", (signal) => dataOf(api.GET("/api/media/destination/", { signal })), { changes: { aggregates: ["destination"] } });
  return (
    <Answered query={all}>
      {(found) => {
        const open = found.find((each) => each.id === values["destination"]) ?? null;
        return (
          <>
            <DataTable
              caption="Destinations"
              columns={columnsOf(trials)}
              rows={found}
              rowKey={(each) => each.id}
              onRow={(each) => set({ destination: each.id })}
              stale={all.stale.value}
              empty={<EmptyState title="No destinations">A destination is a platform or a server for publications.</EmptyState>}
            />
            {(open || values["destination"] === "new") && (
              <DestinationDrawer
                key={open?.id ?? "new"}
                destination={open}
                {...{ editable }}
                trial={open && trials[open.id]}
                onTrial={(id, said) => setTrials((before) => ({ ...before, [id]: { said, at: now.peek() } }))}
                onClose={() => set({ destination: "" })}
                onSaved={(id) => (all.refresh(), set({ destination: id }))}
              />
            )}
          </>
        );
      }}
    </Answered>
  );
}

function columnsOf(trials: Readonly<Record<string, Trial>>): readonly Column<Destination>[] {
  return [
    { key: "name", title: "Name", value: (each) => each.name, cell: (each) => <bdi title={each.name}>{each.name.slice(0, 200)}</bdi> },
    { key: "target", title: "Target", width: "12rem", value: (each) => targetOf(each.target).word, cell: (each) => targetOf(each.target).word },
    { key: "active", title: "State", width: "9rem", value: (each) => Number(each.active), cell: (each) => <Badge state={each.active ? { word: "Active", tone: "ok" } : { word: "Not active", tone: "off" }} /> },
    {
      key: "trial",
      title: "Last test here",
      width: "40%",
      secondary: true,
      cell: ({ id }) => {
        const trial = trials[id];
        return trial ? <span title={trial.said.actionDescription}>{clock(new Date(trial.at))} {trial.said.actionDescription}</span> : <span class="faint">–</span>;
      },
    },
  ];
}
