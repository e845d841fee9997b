import { Panel } from "../../../parts";
import { Infrastructure, Orders } from "../../infrastructure/Infrastructure";
import type { TabProps } from "./props";

/** The infrastructure of an Event, and its orders. */
export default function Provisioning({ event }: TabProps) {
  return (
    <Panel title="Infrastructure" actions={<Orders event={event} />}>
      <Infrastructure event={event} />
    </Panel>
  );
}
