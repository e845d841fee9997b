// The page of the job engine. What it shows comes from jobs, so from any client: it is set as text only, never as HTML.
"use strict";

const SLOWEST = 15000;
const LONGEST_SILENCE = 40000; // the server says something every 15 seconds
const MOST_RECORDS = 2000;
const MOST_COUNTED = 1000; // the engine counts no further
const at = (id) => document.getElementById(id);
const base = new URL(".", document.currentScript.src);

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function when(iso) {
  const moment = element("time", new Date(iso).toLocaleString());
  moment.dateTime = iso;
  return moment;
}

// An EventSource that never gives up: the browser's own does when the server answers an error while it starts again.
class Stream {
  constructor(address, handlers) {
    this.address = address;
    this.handlers = handlers;
    this.full = false;
    this.wait = 500;
    this.over = false;
    this.open();
  }

  open() {
    this.source = new EventSource(this.address);
    this.heard();
    this.source.addEventListener("beat", () => {
      this.heard();
      this.handlers.state("open");
    });
    this.source.onopen = () => {
      this.wait = 500;
      this.handlers.state("open");
    };
    this.source.onmessage = (event) => {
      this.heard();
      this.handlers.state("open");
      this.handlers.message(JSON.parse(event.data));
    };
    this.source.addEventListener("away", () => {
      this.heard();
      this.handlers.state("away");
    });
    this.source.addEventListener("full", () => {
      this.heard();
      this.full = true;
      this.handlers.state("full");
    });
    this.source.addEventListener("end", () => {
      this.close();
      this.handlers.state("end");
    });
    this.source.onerror = () => {
      if (this.over) return;
      if (!this.full) this.handlers.state("lost");
      this.full = false;
      if (this.source.readyState === EventSource.CLOSED) this.again();
    };
  }

  again() {
    clearTimeout(this.silence);
    clearTimeout(this.timer);
    this.source.close();
    this.timer = setTimeout(() => this.open(), this.wait);
    this.wait = Math.min(this.wait * 2, SLOWEST);
  }

  // A connection may be gone without anybody being told, on a phone that slept for instance.
  heard() {
    clearTimeout(this.silence);
    this.silence = setTimeout(() => {
      this.handlers.state("lost");
      this.again();
    }, LONGEST_SILENCE);
  }

  close() {
    this.over = true;
    clearTimeout(this.silence);
    clearTimeout(this.timer);
    this.source.close();
  }
}

// --- the jobs

const CONNECTION = {
  open: ["open", "Connected: what you see is as it is now."],
  away: ["lost", "The engine does not reach its database. What you see may be old."],
  full: ["waiting", "Too many look on already. Trying again in half a minute."],
  lost: ["lost", "The connection is lost. What you see may be old. Connecting again …"],
};

const PLACES = ["started", "queued", "scheduled"];
const rows = new Map();
let board = null;
let looked = ""; // the client whose jobs are shown; all where it is empty
let chosen = null;

// A page that is loaded again shows the same.
function remember() {
  const asked = new URLSearchParams();
  if (looked) asked.set("client", looked);
  if (chosen !== null) asked.set("job", chosen);
  history.replaceState(null, "", String(asked) ? `?${asked}` : location.pathname);
}

function connection(state) {
  const [kind, text] = CONNECTION[state] || CONNECTION.lost;
  if (at("connection").textContent === text) return;
  at("connection").dataset.state = kind;
  at("connection").textContent = text;
}

function describe(job, place) {
  const parts = [job.client, `priority ${job.priority}`];
  if (place === "queued") parts.push(`position ${job.position}`);
  if (place === "scheduled" && job.run_at) parts.push(`at ${new Date(job.run_at).toLocaleString()}`);
  return parts.join(" · ");
}

// A row is kept from one message to the next and moves with its job, so that the focus stays where it is.
function row(job, place) {
  let found = rows.get(job.id);
  if (!found) {
    const item = element("li");
    const button = element("button");
    const title = element("span");
    const meta = element("span", "", "meta");
    const tasks = element("ul", "", "tasks");
    button.type = "button";
    button.append(title, meta);
    button.addEventListener("click", () => {
      follow(job.id);
      at("log").scrollIntoView();
    });
    item.append(button, tasks);
    found = { item, button, title, meta, tasks, bars: new Map() };
    rows.set(job.id, found);
  }
  put(found.title, `Job ${job.id}: ${job.workflow}`);
  put(found.meta, describe(job, place));
  found.button.setAttribute("aria-current", String(job.id === chosen));
  found.tasks.hidden = place !== "started";
  return found;
}

function put(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function bar(shown, task) {
  let found = shown.bars.get(task.task_id);
  if (!found) {
    const item = element("li");
    const label = element("span");
    const progress = element("progress");
    progress.max = 1;
    const said = element("span", "", "said");
    item.append(label, said, progress);
    shown.tasks.append(item);
    found = { label, said, progress };
    shown.bars.set(task.task_id, found);
  }
  const runs = task.state === "running" || task.state === "publishing";
  const percent = Math.floor(task.fraction * 100);
  const far = runs ? `, ${percent} %` : "";
  const again = task.attempts > 1 ? `, attempt ${task.attempts}` : "";
  put(found.label, `${task.name}, ${task.state}${again}${far}`);
  put(found.said, task.message);
  found.progress.hidden = !runs;
  found.progress.value = task.fraction;
  found.progress.setAttribute("aria-label", `${task.name}: ${percent} %`);
}

function list(place, jobs, count) {
  const items = jobs.map((job) => row(job, place).item);
  const node = at(place);
  const wanted = new Set(items);
  // What stays is not touched: a press on a button that leaves the page for a moment is lost.
  for (const item of [...node.children]) if (!wanted.has(item)) item.remove();
  items.forEach((item, index) => {
    if (node.children[index] !== item) node.insertBefore(item, node.children[index] || null);
  });
  at(`${place}-none`).hidden = jobs.length > 0;
  const many = count >= MOST_COUNTED ? `${MOST_COUNTED} or more` : String(count);
  put(at(`${place}-count`), count > jobs.length ? `(${many}, the first ${jobs.length} shown)` : `(${many})`);
}

function show(data) {
  board = data;
  const focused = document.activeElement;
  put(at("version"), data.version);
  put(at("limits"), `Client ${looked || "admin"}: at most ${data.max_jobs} at a time, ${data.priority_slots} of them kept for urgent jobs.`);
  for (const place of PLACES) list(place, data[place], data.counts[place]);
  for (const task of data.tasks) {
    const shown = rows.get(task.job_id);
    if (shown) bar(shown, task);
  }
  for (const [job, shown] of rows) if (!shown.item.isConnected) rows.delete(job);
  if (focused.isConnected && focused !== document.activeElement) focused.focus({ preventScroll: true });
}

let watching = null;

function watch(client) {
  if (watching) watching.close();
  looked = client;
  const address = new URL("dashboard/stream", base);
  if (client) address.searchParams.set("client", client);
  watching = new Stream(address, { message: show, state: connection });
}

at("filter").addEventListener("submit", (event) => {
  event.preventDefault();
  watch(at("client").value.trim());
  remember();
});

// --- the log of one job

const LOG = {
  open: (job) => `Job ${job}: following.`,
  away: (job) => `Job ${job}: the engine does not reach its database.`,
  full: (job) => `Job ${job}: too many follow logs already. Trying again in half a minute.`,
  lost: (job) => `Job ${job}: the connection is lost, or there is no such job. Connecting again …`,
  end: (job) => `Job ${job}: it has ended.`,
};

let following = null;
let known = new Set();
let untold = [];

function line(record) {
  const item = element("li", undefined, record.severity_description);
  const task = record.task_id === null ? "" : `, task ${record.task_id}`;
  item.append(
    when(record.created_at),
    element("span", ` ${record.severity_description} ${record.progname}${task} `, "who"),
    element("span", record.message),
    ...record.pictures.map(picture),
  );
  return item;
}

// Served where media are, and of Events that anybody may watch. Others leave no hole.
function picture(path) {
  const made = element("img");
  made.alt = path;
  made.title = path;
  made.addEventListener("error", () => made.remove());
  made.src = new URL(`../media/${path.split("/").map(encodeURIComponent).join("/")}`, base);
  return made;
}

// Many at once: a long log comes as thousands of messages, and each look at the height has the page laid out anew.
function tell(record) {
  if (known.has(record.id)) return;
  known.add(record.id);
  if (untold.push(record) === 1) setTimeout(write, 50);
}

function write() {
  const records = at("records");
  const below = records.scrollHeight - records.scrollTop - records.clientHeight < 40;
  records.append(...untold.splice(0).slice(-MOST_RECORDS).map(line));
  while (records.children.length > MOST_RECORDS) records.firstElementChild.remove();
  if (known.size > MOST_RECORDS) put(at("log-title"), `Log of job ${chosen}: the last ${MOST_RECORDS} records`);
  if (below) records.scrollTop = records.scrollHeight;
}

function follow(job) {
  if (following) following.close();
  chosen = job;
  known = new Set();
  untold = [];
  remember();
  at("job").value = String(job);
  at("records").replaceChildren();
  put(at("log-title"), `Log of job ${job}`);
  put(at("log-state"), `Job ${job}: connecting …`);
  if (board) show(board);
  // A new EventSource knows nothing of the last id, so all is told again and what is known is passed over.
  following = new Stream(new URL(`logs/${job}/stream`, base), {
    message: tell,
    state: (state) => put(at("log-state"), LOG[state](job)),
  });
}

at("choose").addEventListener("submit", (event) => {
  event.preventDefault();
  follow(Number(at("job").value));
});

const asked = new URLSearchParams(location.search);
at("client").value = asked.get("client") || "";
watch(at("client").value);
if (/^[0-9]{1,15}$/.test(asked.get("job") || "")) follow(Number(asked.get("job")));
