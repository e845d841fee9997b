import { render } from "preact";
import { forgetBrokenStyles } from "./kernel/build";
import { followChanges } from "./kernel/changes";
import { followKeys } from "./kernel/keys";
import { followOtherTabs, resumeSession } from "./kernel/session";
import { startTheme } from "./kernel/theme";
import { startClock } from "./kernel/time";
import { App } from "./shell/App";
import "./theme/index.css";

startTheme();
forgetBrokenStyles();
startClock();
followKeys();
followOtherTabs();
followChanges();
void resumeSession();
render(<App />, document.getElementById("root")!);
