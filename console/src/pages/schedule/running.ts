/** The writes of the schedule, which continue while another page is shown. */

import { Run } from "../../kernel/runs";

export const changing = new Run({ page: "/schedule" });
export const importing = new Run({ page: "/schedule" });
