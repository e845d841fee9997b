import { api, dataOf } from "../../kernel/api";
import { useQuery } from "../../kernel/query";
import { useQueryState } from "../../kernel/router";
import { Answered, Badge, DataTable, EmptyState, FilterBar, Panel, type Column } from "../../parts";
import { ProfileDrawer } from "./ProfileDrawer";
import { templateOf, type Profile } from "./profile";

const COLUMNS: readonly Column<Profile>[] = [
  { key: "name", title: "Name", value: (each) => each.name, cell: (each) => <bdi title={each.name.slice(0, 300)}>{each.name.slice(0, 300)}</bdi> },
  {
    key: "reference",
    title: "Reference",
    secondary: true,
    value: (each) => each.referenceId,
    cell: (each) => (each.referenceId ? <bdi title={each.referenceId}>{each.referenceId}</bdi> : <span class="faint">–</span>),
  },
  { key: "made", title: "How it is made", value: (each) => madeBy(each), cell: (each) => <bdi>{madeBy(each)}</bdi> },
  { key: "resources", title: "Resources", width: "7rem", align: "end", value: (each) => templateOf(each.configurationJson)?.resources, cell: (each) => templateOf(each.configurationJson)?.resources ?? "–" },
];

function madeBy(profile: Profile): string {
  const template = templateOf(profile.configurationJson)?.template;
  return template ? `Template ${template}` : "Exists already";
}

/** Infrastructure profiles, and the templates that they name. */
export function Profiles({ editable }: { editable: boolean }) {
  const { values, set } = useQueryState();
  const profiles = useQuery("infrastructure profiles", (signal) => dataOf(api.GET("/api/infrastructureprofile/", { signal })), { changes: { aggregates: ["infrastructure_profile"] } });
  const search = (values["search"] ?? "").toLowerCase();
  return (
    <>
      <FilterBar filters={[{ name: "search", label: "Search", kind: "search" }]} />
      <Answered query={profiles}>
        {(all) => (
          <>
            <DataTable
              caption="Infrastructure profiles"
              columns={COLUMNS}
              rows={all.filter((each) => `${each.name} ${each.referenceId}`.toLowerCase().includes(search))}
              rowKey={(each) => each.id}
              onRow={(each) => set({ open: each.id })}
              stale={profiles.stale.value}
              empty={<EmptyState title="No profiles">A profile defines the resources of an Event.</EmptyState>}
            />
            <Templates profiles={all} />
          </>
        )}
      </Answered>
      {values["open"] && (
        <ProfileDrawer
          key={values["open"]}
          id={values["open"] === "new" ? null : values["open"]}
          editable={editable}
          onClose={() => set({ open: "" })}
          onDone={() => (profiles.refresh(), set({ open: "" }))}
        />
      )}
    </>
  );
}

/** The templates that profiles name. Only the machines of the role `provisioning` know which are installed. */
function Templates({ profiles }: { profiles: readonly Profile[] }) {
  const counts = new Map<string, number>();
  for (const { configurationJson } of profiles) {
    const template = templateOf(configurationJson)?.template;
    if (template) counts.set(template, (counts.get(template) ?? 0) + 1);
  }
  if (counts.size === 0) return null;
  return (
    <Panel title="Templates that profiles name">
      <ul class="templates">
        {[...counts].sort().map(([template, count]) => (
          <li key={template}>
            <bdi>{template}</bdi> <Badge state={{ word: `${count} ${count === 1 ? "profile" : "profiles"}`, tone: "neutral" }} />
          </li>
        ))}
      </ul>
      <p class="hint">A template is a directory that the operator has installed, with a Terraform module or the address of a service. If one is missing, provisioning fails with an error.</p>
    </Panel>
  );
}
