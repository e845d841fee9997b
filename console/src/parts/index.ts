/** All parts of pages: `import { DataTable, Time } from "../../parts"`. */

export { Badge } from "./Badge";
export { Button } from "./Button";
export { ConnectionBand, UnreadNote } from "./Connection";
export { DataTable, type Column, type Sort } from "./DataTable";
export { Confirm, Dialog, Drawer, PageToasts } from "./Dialog";
export { FilterBar, type Filter } from "./FilterBar";
export { ChangedMeanwhile, Check, Field, FormError, TimeField, useBegun, useSubmit } from "./Form";
export { Icon, type IconName } from "./Icon";
export { loaded } from "./Loaded";
export { Pager, Shown } from "./Pager";
export { RunAway, RunReport } from "./RunReport";
export { Answered, CopyButton, EmptyState, Facts, FailureNote, JsonView, NoAnswer, PageHead, Panel, Progress, Skeleton, Sparkline } from "./Small";
export { Tabs, type Tab } from "./Tabs";
export { Time } from "./Time";
export { useVirtualRows } from "./Virtual";
