// Drives the admin's page of a daemon in Chromium, as an admin would. Every
// console error and every request to another host is a failure.
import { spawn, execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { createServer as createModel } from "node:http";
import assert from "node:assert/strict";
import path from "node:path";

const { NODE_MODULES, WORK, CHROMIUM, SCREENS } = process.env;
const require = createRequire(path.join(NODE_MODULES, "x.js"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const synthbot = path.join(WORK, "synthbot");
const config = path.join(WORK, "config.toml");
const call = (args, input = "") => execFileSync(synthbot, [...args, "-c", config], { input, encoding: "utf8" });
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

const freePort = () => new Promise((found) => {
  const s = createServer().listen(0, "127.0.0.1", () => {
    const { port } = s.address();
    s.close(() => found(port));
  });
});

// thread is a place with a name that is wider than a phone.
const thread = "discord/81384788765712384/1234567890123456789/1234567890123456790";

// What the bot lived through before: a group, a memory, and thirty days of use.
const seed = () => {
  const now = Date.now();
  const lines = [];
  const talk = ["Does anybody know when the library opens?", "At nine, I think. On Saturdays at ten.", "Thank you!"];
  talk.forEach((text, i) => lines.push({ entry: { kind: "message", message: {
    path: "telegram/-100123", id: `${i + 1}`, author: { id: `${10 + (i % 2)}`, name: ["Jay", "Ann"][i % 2] }, text,
    time: new Date(now - 3600e3 + i * 60e3).toISOString(),
  } } }));
  lines.push({ entry: { kind: "message", message: {
    path: thread, id: "1", author: { id: "10", name: "Jay" }, text: "Nobody reads threads.", time: new Date(now - 7200e3).toISOString(),
  } } });
  lines.push({ memory: { id: "1", text: "Ann works at the library.", tags: ["work"], origin: "telegram/-100123", importance: 3, time: new Date(now - 3000e3).toISOString() } });
  for (let day = 0; day < 30; day++) {
    const date = new Date(now - day * 86400e3).toISOString().slice(0, 10);
    const wave = 2 + Math.sin(day / 3);
    for (const person of ["telegram/-100123", "telegram/@user/10"]) {
      lines.push({ use: { day: date, person, engine: "big", calls: 9, in: Math.round(40000 * wave), cached: Math.round(21000 * wave), out: Math.round(5200 * wave) } });
    }
  }
  return lines.map((l) => JSON.stringify(l)).join("\n") + "\n";
};

// The model answers at once, or, while it is held, when it is let go.
let broken = 0; // the status that it fails with; 0: it answers
let held = Promise.resolve();
let letGo = () => {};
const hold = () => { held = new Promise((done) => { letGo = done; }); };
const model = createModel(async (request, answer) => {
  request.resume();
  await held;
  if (broken) {
    answer.writeHead(broken);
    answer.end(JSON.stringify({ error: { message: "not today" } }));
    return;
  }
  answer.setHeader("Content-Type", "application/json");
  const content = JSON.stringify({ response: "Hello! Good that you are here.", intent: "greeting", confidence: 0.9 });
  answer.end(JSON.stringify({
    choices: [{ message: { role: "assistant", content }, finish_reason: "stop" }], usage: { prompt_tokens: 1900, completion_tokens: 40 },
  }));
});
await new Promise((done) => model.listen(0, "127.0.0.1", done));

const origin = `http://127.0.0.1:${await freePort()}`;
writeFileSync(config, `
[bot]
data_dir = "data"
[persona]
path = "aria.toml"
[access]
private = "pairing"
[interfaces.console]
enabled = true
[admin]
listen = "${origin.slice(7)}"
[plugins.memory]
extract = false
[[engine]]
name = "big"
provider = "vllm"
model = "x"
base_url = "http://127.0.0.1:${model.address().port}"
stream = false
price_in = 0.8
price_out = 3.2
`);
writeFileSync(path.join(WORK, "seed.jsonl"), seed());
call(["memory", "import", path.join(WORK, "seed.jsonl")]);

const daemon = spawn(synthbot, ["run", "-c", config], { stdio: ["pipe", "ignore", "pipe"] });
let log = "";
daemon.stderr.on("data", (data) => { log += data; });
const ended = new Promise((done) => daemon.on("exit", done));
const say = (text) => daemon.stdin.write(text + "\n");

const link = async () => {
  for (let tries = 0; ; tries++) {
    try {
      return call(["page"]).trim();
    } catch (fault) {
      if (tries > 100) throw fault;
      await pause(50);
    }
  }
};

const faults = [];
let browser;

// window opens a browser window that reports what must not be.
const window = async (options) => {
  const context = await browser.newContext(options);
  context.on("request", (r) => {
    if (!r.url().startsWith(origin + "/") && !r.url().startsWith("data:")) faults.push("request to " + r.url());
  });
  const page = await context.newPage();
  page.on("console", (m) => { if (m.type() === "error") faults.push(`console: ${m.text()} at ${page.url()}`); });
  page.on("pageerror", (e) => faults.push("script: " + e));
  return page;
};

const login = async (page) => {
  await page.goto(await link());
  await page.getByText("Turns come in live.").waitFor();
  assert.equal(page.url(), origin + "/", "the token is in no address");
};

// accessible looks for what shuts people out: contrast, labels, roles.
const accessible = async (page) => {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21aa", "best-practice"] }));
  for (const v of violations) faults.push(`${page.url()}: ${v.id}: ${v.nodes.map((n) => n.html.slice(0, 120)).join(" | ")}`);
};

const fits = async (page) => {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  if (wide > 0) faults.push(`${page.url()} is ${wide} px too wide`);
};

const steps = {
  "log in, and not twice by one link": async (page) => {
    const first = await link();
    await page.goto(first);
    await page.getByText("Turns come in live.").waitFor();
    const other = await browser.newContext();
    const refused = await other.newPage();
    await refused.goto(first);
    await refused.getByRole("alert").waitFor();
    await other.close();
  },
  "let someone in": async (page) => {
    say("may I talk to you?");
    await page.getByRole("heading", { name: "Who waits to be let in" }).waitFor();
    await page.getByRole("button", { name: /^Let in you console\/@user\/you/ }).click();
    await page.getByText("you (console/@user/you) may talk to me now.").waitFor();
    await page.getByText("Turns come in live.").waitFor();
    assert.equal(await page.getByRole("heading", { name: "Who waits to be let in" }).count(), 0);
    assert.equal(call(["pair"]), "");
  },
  "watch a turn from its beginning to its end": async (page) => {
    const running = page.locator("#running");
    await running.getByText("None.").waitFor();
    const before = await page.locator("#turns tr").count();
    hold();
    say("hello there");
    await running.getByText("thinking").waitFor();
    assert.match(await running.innerText(), /console\/main/);
    assert.doesNotMatch(await page.content(), /hello there/);
    assert.equal(await page.locator("#turns tr").count(), before);
    letGo();
    await page.waitForFunction((n) => document.getElementById("turns").children.length > n, before);
    assert.match(await page.locator("#turns tr").first().innerText(), /console\/main/);
    await running.getByText("None.").waitFor();
  },
  "inspect its prompt": async (page) => {
    await page.locator("#turns a").first().click();
    await page.getByRole("heading", { name: /^Question 1/ }).waitFor();
    await page.getByRole("heading", { name: "What was said is closed" }).waitFor();
    assert.doesNotMatch(await page.content(), /hello there/);
  },
  "open what is private, with a reason": async (page) => {
    await page.getByLabel("Why must you read it?").fill("to try the page");
    await page.getByRole("button", { name: "Open for fifteen minutes" }).click();
    await page.getByRole("heading", { name: "Plans" }).waitFor();
    await page.getByText("The prompt of question 1 as the model got it").click();
    await page.locator("pre", { hasText: "hello there" }).first().waitFor();
    await page.getByText("Up to here, the prompt is the same").waitFor();
    assert.match(log, /private conversation opened by an admin/);
    await page.getByRole("link", { name: "console/main" }).click();
    await page.getByText("hello there").waitFor();
  },
  "edit a memory": async (page) => {
    await page.getByRole("link", { name: "Memories", exact: true }).click();
    await page.getByLabel("Words").fill("library");
    await page.getByRole("button", { name: "Search" }).click();
    await page.getByText("Ann works at the library.").waitFor();
    assert.equal(page.url(), origin + "/memories/found");
    await page.getByRole("link", { name: "Edit, merge or forget" }).click();
    await page.getByLabel("What the bot remembers").waitFor();
    await page.goBack();
    await page.getByRole("link", { name: "Edit, merge or forget" }).click();
    await page.getByLabel("What the bot remembers").fill("Ann works at the museum.");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("heading", { name: "What it said before" }).waitFor();
    assert.match(call(["memory", "search", "museum", "--path", "telegram/-100123"]), /Ann works at the museum\./);
  },
  "change a persona, with preview": async (page) => {
    await page.getByRole("link", { name: "Personas" }).click();
    await page.getByRole("link", { name: "Aria" }).click();
    const text = page.getByLabel("The persona's file");
    const before = await text.inputValue();
    await text.fill(before.replace('name = "Aria"', 'name = "Mira"'));
    await page.getByText("You are Mira").waitFor(); // as it is written
    await page.getByRole("button", { name: "Preview" }).click();
    await page.getByText("You are Mira").waitFor();
    await page.getByLabel("Say something to the persona").fill("Who are you?");
    await page.getByRole("button", { name: "Ask" }).click();
    await page.getByText("answered by big").waitFor();
    await page.locator("li.self", { hasText: "Good that you are here." }).waitFor();
    assert.match(readFileSync(path.join(WORK, "aria.toml"), "utf8"), /name = "Aria"/);
    await page.getByRole("button", { name: "Save and use" }).click();
    await page.waitForURL(/personas\/one/);
    assert.match(readFileSync(path.join(WORK, "aria.toml"), "utf8"), /name = "Mira"/);
    for (let tries = 0; !/reloaded/.test(log); tries++) {
      assert.ok(tries < 100, "the configuration was not read again");
      await pause(50);
    }
  },
  "change a place's setting": async (page) => {
    await page.goto(origin + "/talk");
    await page.getByRole("link", { name: "telegram/-100123" }).click();
    await page.getByRole("link", { name: "settings here" }).click();
    const setting = (name) => page.getByRole("listitem").filter({ has: page.locator("code", { hasText: new RegExp(`^${name}$`) }) }).first();
    await setting("language").locator("summary").click();
    await setting("language").getByRole("textbox").fill("it");
    await setting("language").getByRole("button").click();
    await page.getByRole("status").getByText("language: it (a command in telegram/-100123)").waitFor();
    await setting("language").getByText("from a command in telegram/-100123").waitFor();
    await setting("activation").locator("summary").click();
    await setting("activation").getByRole("combobox").selectOption("never");
    await setting("activation").getByRole("button").click();
    await page.getByRole("status").getByText("Here I answer as never says.").waitFor();
    assert.match(call(["check", "--path", "telegram/-100123"]), /activation +never/);
    await setting("activation").locator("summary").click();
    await setting("activation").getByRole("combobox").selectOption("default");
    await setting("activation").getByRole("button").click();
    await setting("activation").getByText("from bot.activation").waitFor();
  },
  "let the bot sleep in a place, and wake it": async (page) => {
    await page.goto(origin + "/talk/place?place=telegram%2F-100123");
    await page.getByRole("button", { name: "Let the bot sleep here" }).click();
    await page.getByText("Good night.").waitFor();
    await page.goto(origin + "/");
    await page.getByRole("button", { name: /^Wake in/ }).click();
    await page.getByText("I am awake.").waitFor();
    assert.equal(await page.getByRole("button", { name: /^Wake in/ }).count(), 0);
  },
  "find an error, and that a fallback answered": async (page) => {
    await page.goto(origin + "/log?level=warn");
    await page.getByText("Lines come in live.").waitFor();
    broken = 401;
    say("are you well?");
    await page.locator("#log tr").filter({ hasText: "engine failed" }).first().waitFor();
    assert.doesNotMatch(await page.locator("#log").innerText(), /well/);
    await page.goto(origin + "/");
    const row = page.locator("#turns tr").first();
    await row.getByText("fallback").waitFor();
    await page.locator("#state").getByText("the key is refused").waitFor();
    await row.getByRole("link").click();
    await page.getByRole("heading", { name: "answered by offline as a fallback" }).waitFor();
    await page.getByText(/engine big: fatal: status 401/).waitFor();
    broken = 0;
  },
  "be refused without a session": async () => {
    for (const where of ["/talk", "/memories", "/live", "/personas", "/charts", "/settings", "/sessions", "/log", "/log/live"]) {
      assert.equal((await fetch(origin + where)).status, 401, where);
    }
  },
  "be refused with a foreign origin": async (page) => {
    const cookie = (await page.context().cookies()).map((c) => `${c.name}=${c.value}`).join("; ");
    const csrf = await page.locator('input[name="csrf"]').first().inputValue();
    const logout = (from) => fetch(origin + "/logout", {
      method: "POST", redirect: "manual", body: new URLSearchParams({ csrf }), headers: { Cookie: cookie, Origin: from },
    });
    assert.equal((await logout("http://evil.example")).status, 403);
    const evil = await browser.newContext({ storageState: await page.context().storageState() });
    await evil.route("http://evil.example/**", (r) => r.fulfill({ contentType: "text/html", body: `<form method="post" action="${origin}/logout"><input name="csrf" value="${csrf}"><button>x</button></form>` }));
    const bait = await evil.newPage();
    await bait.goto("http://evil.example/");
    const [answer] = await Promise.all([bait.waitForNavigation(), bait.getByRole("button").click()]);
    assert.equal(answer.status(), 403);
    await evil.close();
    await page.goto(origin + "/");
    await page.getByText("Turns come in live.").waitFor();
  },
  "leave no token behind the address, opening a link while logged in": async (page) => {
    const one = await link();
    await page.goto(one);
    await page.getByText("Turns come in live.").waitFor();
    assert.doesNotMatch(page.url(), new RegExp(one.split("#")[1]));
  },
  "tell of a stream that is refused, as after a restart": async () => {
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.route("**/live", (r) => r.fulfill({ status: 401 }));
    await page.goto(await link());
    await page.getByText("The connection is lost. Load the page again.").waitFor();
    await context.close();
  },
  "go by keyboard alone": async (page) => {
    await page.goto(origin + "/talk");
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
    await page.keyboard.press("Enter");
    assert.equal(await page.evaluate(() => document.activeElement.id), "main");
    await page.goto(origin + "/memories/one?" + new URLSearchParams({ id: "1", place: "telegram/-100123" }));
    const reached = new Set();
    for (let i = 0; i < 40; i++) {
      await page.keyboard.press("Tab");
      reached.add(await page.evaluate(() => document.activeElement.tagName + " " + (document.activeElement.textContent || "").trim().slice(0, 20)));
    }
    for (const want of ["TEXTAREA", "BUTTON Save", "SUMMARY Forget it", "BUTTON Log out"]) {
      assert.ok([...reached].some((r) => r.startsWith(want)), `${want} is not reached: ${[...reached].join(", ")}`);
    }
  },
  "work without scripts": async () => {
    const page = await window({ javaScriptEnabled: false });
    const token = (await link()).split("#")[1];
    await page.goto(origin + "/login");
    await page.getByLabel("Token").fill(token);
    await page.getByRole("button", { name: "Log in" }).click();
    await page.getByText("The latest turns").waitFor();
    assert.ok(await page.locator("#turns tr").count() >= 1);
    await page.context().close();
  },
};

const inThread = new URLSearchParams({ place: thread });
const screens = { now: "/", turn: null, thread: `/talk/place?${inThread}`, inThread: `/memories?${inThread}`, settingsThere: `/settings?${inThread}`, conversations: "/talk", conversation: "/talk/place?place=telegram%2F-100123", memories: "/memories",
  persona: "/personas/one?id=aria.toml", charts: "/charts", catalogue: "/catalogue", settings: "/settings?place=telegram%2F-100123", sessions: "/sessions", log: "/log" };
const kept = ["now", "turn", "charts", "persona"];

// look goes through all parts, in one colour scheme and size.
const look = async (scheme, size, viewport) => {
  const page = await window({ colorScheme: scheme, viewport, deviceScaleFactor: 1 });
  await page.goto(origin + "/login");
  await accessible(page);
  await login(page);
  for (const [name, where] of Object.entries(screens)) {
    if (where) {
      await page.goto(origin + where);
    } else {
      await page.locator("#turns a").first().click();
      await page.getByRole("heading", { name: "Turn" }).waitFor();
    }
    await accessible(page);
    await fits(page);
    if (SCREENS && kept.includes(name)) {
      mkdirSync(SCREENS, { recursive: true });
      await page.screenshot({ path: path.join(SCREENS, `${name}-${scheme}-${size}.png`) });
    }
  }
  await page.context().close();
};

let status = 0;
try {
  browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
  const page = await window({});
  for (const [name, step] of Object.entries(steps)) {
    await step(page);
    console.log("ok: " + name);
  }
  await page.goto(origin + "/");
  for (let i = 2; i <= 13; i++) {
    say(`what is ${i} and ${i}?`);
    await page.waitForFunction((n) => document.getElementById("turns").children.length >= n, i);
  }
  hold(); // so that a turn is seen that runs
  say("and what is it all about?");
  await page.locator("#running").getByText("thinking").waitFor();
  for (const scheme of ["light", "dark"]) {
    await Promise.all([look(scheme, "desktop", { width: 1200, height: 800 }), look(scheme, "phone", { width: 390, height: 780 })]);
    console.log(`ok: ${scheme}, desktop and phone: contrast, labels, width`);
  }
  assert.deepEqual(faults, []);
  console.log("ok: no console error, no request to another host");
} catch (fault) {
  console.error(fault);
  console.error([...new Set(faults)].join("\n"));
  console.error(log.split("\n").slice(-15).join("\n"));
  status = 1;
} finally {
  letGo();
  if (browser) await browser.close();
  daemon.kill("SIGTERM");
  await ended;
  model.close();
}
process.exit(status);
