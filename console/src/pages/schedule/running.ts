/** The writes of the schedule that go on while it, or another page, is shown. */

import { Run } from "../../kernel/runs";

export const changing = new Run({ page: "/schedule" });
export const importing = new Run({ page: "/schedule" });
