import { useQueryState } from "../../kernel/router";
import { may } from "../../kernel/session";
import { Button, PageHead, Tabs } from "../../parts";
import { ArchiverStreams } from "./ArchiverStreams";
import { Profiles } from "./Profiles";
import { Planned, Provisioned } from "./Provisioned";

const TABS = [
  { key: "events", title: "Provisioned Events" },
  { key: "planned", title: "Planned" },
  { key: "profiles", title: "Profiles" },
  { key: "archive", title: "Archiver streams" },
] as const;
const NEW: Readonly<Record<string, string>> = { profiles: "Add profile", archive: "Add archiver stream" };

/** Infrastructure profiles, provisioned and planned infrastructure, and the records of archivers. */
export default function InfrastructurePage() {
  const { values, set } = useQueryState();
  const tab = TABS.find((each) => each.key === values["tab"])?.key ?? "events";
  const editable = may("operator");
  return (
    <>
      <PageHead
        title="Infrastructure"
        actions={
          editable &&
          NEW[tab] && (
            <Button kind="primary" onClick={() => set({ open: "new" })}>
              {NEW[tab]}
            </Button>
          )
        }
      />
      <Tabs label="What is shown" tabs={TABS} chosen={tab} onChoose={(key) => set({ tab: key === "events" ? "" : key, open: "" })} />
      {tab === "events" && <Provisioned />}
      {tab === "planned" && <Planned />}
      {tab === "profiles" && <Profiles editable={editable} />}
      {tab === "archive" && <ArchiverStreams editable={editable} />}
    </>
  );
}
