// Timers. The host knows only when; what to run stays here.

const timers = new Map();
let nextTimer = 1;

function schedule(run, delay, args, every) {
  if (typeof run !== "function") throw new TypeError("a timer needs a function");
  const id = nextTimer++;
  const millis = Math.max(0, Number(delay) || 0);
  timers.set(id, { run: () => run(...args), every: every ? Math.max(1, millis) : null });
  host.timer(id, millis);
  return id;
}

function clear(id) {
  if (timers.delete(id)) host.clearTimer(id);
}

function fired(id) {
  const timer = timers.get(id);
  if (!timer) return;
  if (timer.every === null) timers.delete(id);
  else host.timer(id, timer.every);
  timer.run();
}

const timerGlobals = {
  setTimeout: (run, delay, ...args) => schedule(run, delay, args, false),
  setInterval: (run, delay, ...args) => schedule(run, delay, args, true),
  clearTimeout: clear,
  clearInterval: clear,
};
