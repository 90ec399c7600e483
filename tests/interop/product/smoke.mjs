// The seed's smoke test, as written, on the official client.
import { connect, report } from "./session.mjs";

const itx = connect().session.projects.get("default");
const path = "/sandboxes/smoke";
const sb = await itx.sandboxes.get(path).create({ instanceType: "lite" });
const r = await sb.exec("ls /");
report({ exitCode: r.exitCode, stdout: r.stdout });
