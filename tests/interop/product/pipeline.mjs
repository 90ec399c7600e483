// authenticate → projects.get → sandboxes.get → exec, all sent before anything comes back.
import { connect, counts, report } from "./session.mjs";

const r = await connect().session.projects.get("default").sandboxes.get("/sandboxes/main").exec("echo hi");
report({ stdout: r.stdout, sentBeforeFirstAnswer: counts.sentBeforeFirstAnswer });
