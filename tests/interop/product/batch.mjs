// The whole way into a sandbox in one HTTP request, with either version.
const { newHttpBatchRpcSession } = await import(process.env.HUTCH_CAPNWEB ?? "capnweb");

let requests = 0;
const fetched = globalThis.fetch;
globalThis.fetch = (...args) => {
  requests += 1;
  return fetched(...args);
};
const url = process.env.HUTCH_URL + "/api";
const open = (token) => newHttpBatchRpcSession(url).authenticate({ type: "bearer", token });

const sandbox = open(process.env.HUTCH_TOKEN).projects.get("default").sandboxes.get("/sandboxes/main");
const [first, second] = await Promise.all([sandbox.exec("echo hi"), sandbox.exec("exit 3")]);
const refused = await open("wrong").whoami().then(() => "", (error) => error.code);
const lists = await open(process.env.HUTCH_TOKEN)
  .projects.list()
  .map((project) => ({ slug: project.slug }));
console.log(JSON.stringify({ stdout: first.stdout, code: second.exitCode, refused, lists, requests }));
