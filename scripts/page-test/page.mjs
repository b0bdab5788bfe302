// Tests the admin page of a daemon in Chromium, as an admin uses it: all tasks on a desktop
// in light and on a phone in dark colours, each with a daemon of its own. Every console
// error and every request to another host is a failure.
import { spawn, execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { createServer as createModel } from "node:http";
import { crc32 } from "node:zlib";
import assert from "node:assert/strict";
import path from "node:path";

const { NODE_MODULES, WORK, CHROMIUM, SCREENS } = process.env;
const require = createRequire(path.join(NODE_MODULES, "x.js"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const synthbot = path.join(WORK, "synthbot");
let home; // the folder of the daemon
let config;
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

// The stored data of the bot: a group, a memory, and thirty days of usage.
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
let knows = true; // what it is asked
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
  const content = JSON.stringify(knows
    ? { response: "Hello! Good that you are here.", intent: "greeting", confidence: 0.9 }
    : { response: "I do not know.", actions: [{ type: "knowledge_escalate", payload: { question: "the number of the wardrobe" } }] });
  answer.end(JSON.stringify({
    choices: [{ message: { role: "assistant", content }, finish_reason: "stop" }], usage: { prompt_tokens: 1900, completion_tokens: 40 },
  }));
});
await new Promise((done) => model.listen(0, "127.0.0.1", done));

let origin;
let daemon;
let log;
let ended;
const say = (text) => daemon.stdin.write(text + "\n");

// begin starts a daemon in a folder of its own.
const begin = async (name) => {
  home = path.join(WORK, name);
  mkdirSync(path.join(home, "docs"), { recursive: true });
  config = path.join(home, "config.toml");
  origin = `http://127.0.0.1:${await freePort()}`;
  copyFileSync(path.join(WORK, "aria.toml"), path.join(home, "aria.toml"));
  writeFileSync(path.join(home, "docs", "faq.md"), "# Questions\n\nKeys hang in the hall.\n");
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
[plugins.games]
[plugins.knowledge]
[[plugins.knowledge.source]]
name = "faq"
path = "docs"
[[engine]]
name = "big"
provider = "vllm"
model = "x"
base_url = "http://127.0.0.1:${model.address().port}"
stream = false
price_in = 0.8
price_out = 3.2
`);
  writeFileSync(path.join(home, "seed.jsonl"), seed());
  call(["memory", "import", path.join(home, "seed.jsonl")]);
  daemon = spawn(synthbot, ["run", "-c", config], { stdio: ["pipe", "ignore", "pipe"] });
  log = "";
  daemon.stderr.on("data", (data) => { log += data; });
  ended = new Promise((done) => daemon.on("exit", done));
};

const end = async () => {
  letGo();
  daemon.kill("SIGTERM");
  await ended;
};

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
  page.on("console", (m) => {
    if (/400/.test(m.text()) && m.location().url === origin + "/personas/import") return; // the file is refused
    if (m.type() === "error") faults.push(`console: ${m.text()} at ${page.url()}`);
  });
  page.on("pageerror", (e) => faults.push("script: " + e));
  return page;
};

const login = async (page) => {
  await page.goto(await link());
  await page.getByText("Turns are shown live.").waitFor();
  assert.equal(page.url(), origin + "/", "the token is in no address");
};

// accessible looks for what shuts people out: contrast, labels, roles.
const accessible = async (page) => {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21aa", "best-practice"] }));
  for (const v of violations) faults.push(`${page.url()}: ${v.id}: ${v.nodes.map((n) => n.html.slice(0, 120)).join(" | ")}`);
};

// card is a picture that holds a character card.
const card = (character) => {
  const picture = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "base64");
  const body = Buffer.from("tEXtchara\0" + Buffer.from(JSON.stringify(character)).toString("base64"), "latin1");
  const chunk = Buffer.alloc(body.length + 8);
  chunk.writeUInt32BE(body.length - 4, 0);
  body.copy(chunk, 4);
  chunk.writeUInt32BE(crc32(body), body.length + 4);
  return Buffer.concat([picture.subarray(0, 33), chunk, picture.subarray(33)]);
};

// tabTo goes by keyboard to what has a role and a name.
const tabTo = async (page, role, name) => {
  const wanted = page.getByRole(role, { name });
  for (let i = 0; i < 80; i++) {
    await page.keyboard.press("Tab");
    if (await wanted.evaluateAll((all) => all.includes(document.activeElement))) return;
  }
  assert.fail(`no Tab leads to the ${role} ${name}`);
};

const fits = async (page) => {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  if (wide > 0) faults.push(`${page.url()} is ${wide} px too wide`);
};

const steps = {
  "log in, and not twice by one link": async (page) => {
    const first = await link();
    await page.goto(first);
    await page.getByText("Turns are shown live.").waitFor();
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
    await page.getByText("Turns are shown live.").waitFor();
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
    await page.getByRole("heading", { name: "The conversation is closed" }).waitFor();
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
    assert.match(readFileSync(path.join(home, "aria.toml"), "utf8"), /name = "Aria"/);
    await page.getByRole("button", { name: "Save and use" }).click();
    await page.waitForURL(/personas\/one/);
    assert.match(readFileSync(path.join(home, "aria.toml"), "utf8"), /name = "Mira"/);
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
  "import a card, let it speak in a place, and remove it": async (page) => {
    await page.goto(origin + "/personas");
    const choose = page.getByLabel("A character card");
    await choose.setInputFiles({ name: "x.png", mimeType: "image/png", buffer: Buffer.from("no picture") });
    await page.getByRole("button", { name: "Import" }).click();
    await page.getByRole("alert").getByText("Not imported: x.png").waitFor();
    await page.goto(origin + "/personas");
    await choose.setInputFiles({ name: "x.png", mimeType: "image/png", buffer: card({ name: "Captain", description: "Sails." }) });
    await page.getByRole("button", { name: "Import" }).click();
    await page.getByRole("status").getByText("It is imported.").waitFor();
    const avatar = page.getByRole("img", { name: "The picture of Captain" });
    assert.equal(await avatar.evaluate((image) => image.decode().then(() => image.naturalWidth)), 1);
    await page.getByLabel("Say something to the persona").fill("Who are you?");
    await page.getByRole("button", { name: "Ask" }).click();
    await page.getByText("answered by big").waitFor();
    await page.goto(origin + "/settings?place=telegram%2F-100123");
    const persona = page.getByRole("listitem").filter({ has: page.locator("code", { hasText: /^persona$/ }) }).first();
    await persona.locator("summary").click();
    await persona.getByRole("combobox").selectOption("Captain");
    await persona.getByRole("button").click();
    await page.getByRole("status").getByText("Here I am Captain.").waitFor();
    await page.goto(origin + "/personas");
    await page.getByRole("link", { name: "Captain" }).click();
    await page.getByText("Remove it", { exact: true }).click();
    await page.getByRole("button", { name: "Remove it for good" }).click();
    await page.waitForURL(origin + "/personas");
    assert.equal(await page.getByRole("link", { name: "Captain" }).count(), 0);
  },
  "answer what no document answers, by keyboard alone": async (page) => {
    await page.goto(origin + "/");
    const before = await page.locator("#turns tr").count();
    knows = false;
    say("what is the number of the wardrobe?");
    await page.waitForFunction((n) => document.getElementById("turns").children.length > n, before);
    knows = true;
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter"); // skip to the content
    await page.keyboard.press("Shift+Tab");
    for (let i = 0; i < 20 && !/\/knowledge$/.test(page.url()); i++) {
      await page.keyboard.press("Shift+Tab");
      const here = await page.evaluate(() => document.activeElement.textContent.trim());
      if (here === "Knowledge") {
        await page.keyboard.press("Enter");
        await page.waitForURL(origin + "/knowledge");
      }
    }
    await page.getByText("1 question open.").waitFor();
    await page.evaluate(() => document.activeElement.blur());
    for (let i = 0; ; i++) {
      assert.ok(i < 80, "no Tab leads to the question");
      await page.keyboard.press("Tab");
      if (await page.evaluate(() => /^Answer what is the number/.test(document.activeElement.textContent))) break;
    }
    await page.keyboard.press("Enter");
    await tabTo(page, "textbox", /^The answer/);
    await page.keyboard.type("It is seventeen.");
    await tabTo(page, "button", /^Answer what is the number/);
    await page.keyboard.press("Enter");
    await page.getByRole("status").getByText("The answer was passed on and saved.").waitFor();
    await page.getByText("0 questions open.").waitFor();
    await page.getByText("answers: what is the number of the wardrobe?").waitFor();
    await page.goto(origin + "/talk/place?place=console%2Fmain");
    await page.getByText("An admin answers “what is the number of the wardrobe?”:").waitFor();
  },
  "edit and remove what was taught, and read the sources again": async (page) => {
    await page.goto(origin + "/knowledge");
    const entry = page.getByRole("listitem").filter({ hasText: "It is seventeen." }).first();
    await entry.locator("summary", { hasText: "Edit" }).click();
    await entry.getByRole("textbox").fill("It is eighteen.");
    await entry.getByRole("button", { name: /^Edit/ }).click();
    await page.getByRole("status").getByText("The entry is changed.").waitFor();
    assert.match(call(["knowledge", "search", "number of the wardrobe"]), /no passage|none|^$|eighteen/i);
    const changed = page.getByRole("listitem").filter({ hasText: "It is eighteen." }).first();
    await changed.locator("summary", { hasText: "Remove" }).click();
    await changed.getByRole("button", { name: /^Remove/ }).click();
    await page.getByRole("status").getByText("I no longer know that.").waitFor();
    writeFileSync(path.join(home, "docs", "more.md"), "# More\n\nLadders are in the shed.\n");
    await page.getByRole("button", { name: "Read them again" }).click();
    for (let tries = 0; await page.getByText("2 documents, 2 passages").count() === 0; tries++) {
      assert.ok(tries < 50, "the new document is not listed");
      await pause(100);
      await page.goto(origin + "/knowledge");
    }
  },
  "see how far a reading is": async (page) => {
    await page.route("**/knowledge", async (route) => {
      const answer = await route.fetch();
      const body = (await answer.text()).replace("<p>Last read", '<p class="live" role="status">They are being read: faq: 1 of 2. Last read');
      await route.fulfill({ response: answer, body });
    }, { times: 1 }); // then it is over
    await page.goto(origin + "/knowledge");
    await page.getByText("They are being read: faq: 1 of 2.").waitFor();
    await page.getByText(/^Last read/).waitFor();
    assert.equal(await page.getByText("They are being read").count(), 0);
  },
  "list reminders, and cancel one": async (page) => {
    say("/remind add every monday at 9 water the plants");
    await page.goto(origin + "/reminders");
    for (let tries = 0; await page.getByText("water the plants").count() === 0; tries++) {
      assert.ok(tries < 50, "the reminder is not listed");
      await pause(100);
      await page.goto(origin + "/reminders");
    }
    await page.getByText("repeats every week on Monday").waitFor();
    await page.locator("summary", { hasText: "Cancel" }).click();
    await page.getByRole("button", { name: /^Cancel/ }).click();
    await page.getByRole("status").getByText("Cancelled: water the plants").waitFor();
    await page.getByText("0 reminders").waitFor();
  },
  "switch an action off and on, and a plugin": async (page) => {
    const offered = () => call(["prompt", "--path", "console/main", "--text", "hello"]).includes("dice_roll");
    const action = () => page.getByRole("listitem").filter({ has: page.locator("code", { hasText: /^dice_roll$/ }) });
    assert.ok(offered());
    await page.goto(origin + "/catalogue");
    await action().locator("summary").click();
    await action().getByRole("button", { name: "Turn off dice_roll" }).click();
    await page.getByRole("status").getByText("dice_roll is off from now on.").waitFor();
    assert.ok(!offered());
    await action().locator("summary").click();
    await action().getByText("off by a command for all places").waitFor();
    await action().getByRole("button", { name: "Turn on dice_roll" }).click();
    await page.getByRole("status").getByText("dice_roll is on from now on.").waitFor();
    assert.ok(offered());
    await page.getByRole("button", { name: "Turn off games" }).click();
    await page.getByRole("status").getByText("games is off from now on.").waitFor();
    assert.ok(!offered());
    await page.getByRole("button", { name: "Turn on games" }).click();
    await page.getByRole("status").getByText("games is on from now on.").waitFor();
    assert.ok(offered());
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
    await page.getByText("Lines are shown live.").waitFor();
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
    for (const where of ["/talk", "/memories", "/live", "/personas", "/charts", "/settings", "/sessions", "/log", "/log/live", "/knowledge", "/reminders", "/catalogue"]) {
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
    await page.getByText("Turns are shown live.").waitFor();
  },
  "leave no token behind the address, opening a link while logged in": async (page) => {
    const one = await link();
    await page.goto(one);
    await page.getByText("Turns are shown live.").waitFor();
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
  persona: "/personas/one?id=aria.toml", charts: "/charts", knowledge: "/knowledge", reminders: "/reminders", personas: "/personas", catalogue: "/catalogue", catalogueThere: "/catalogue?place=telegram%2F-100123", settings: "/settings?place=telegram%2F-100123", sessions: "/sessions", log: "/log" };
const kept = ["now", "turn", "charts", "persona", "knowledge", "catalogue"];

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

const desktop = { width: 1200, height: 800 };
const phone = { width: 390, height: 844 };

// walk does all jobs of the page, with a daemon of its own that it leaves running.
const walk = async (scheme, size, viewport) => {
  await begin(`${scheme}-${size}`);
  const page = await window({ colorScheme: scheme, viewport, reducedMotion: "reduce" }); // colours are looked at when they are reached
  for (const [name, step] of Object.entries(steps)) {
    await step(page);
    if (!/^be refused|^leave no|^tell of|^work/.test(name)) { // those show no page of their own
      await accessible(page);
      await fits(page);
    }
    console.log(`ok: ${name} (${scheme}, ${size})`);
  }
  return page;
};

let status = 0;
try {
  browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
  const first = await walk("dark", "phone", phone);
  await first.context().close();
  await end();
  const page = await walk("light", "desktop", desktop);
  await page.goto(origin + "/");
  for (let i = 2; i <= 13; i++) {
    say(`what is ${i} and ${i}?`);
    await page.waitForFunction((n) => document.getElementById("turns").children.length >= n, i);
  }
  say("/remind add every monday at 9 water the plants");
  await page.waitForFunction((n) => document.getElementById("turns").children.length >= n, 14);
  knows = false; // so that there is a question that nothing answered
  say("and what is the number of the wardrobe?");
  await page.waitForFunction((n) => document.getElementById("turns").children.length >= n, 15);
  knows = true;
  hold(); // so that a turn is seen that runs
  say("and what is it all about?");
  await page.locator("#running").getByText("thinking").waitFor();
  for (const scheme of ["light", "dark"]) {
    await Promise.all([look(scheme, "desktop", desktop), look(scheme, "phone", phone)]);
    console.log(`ok: ${scheme}, desktop and phone: contrast, labels, width`);
  }
  assert.deepEqual(faults, []);
  console.log("ok: no console error, no request to another host");
} catch (fault) {
  console.error(fault);
  console.error([...new Set(faults)].join("\n"));
  console.error(log?.split("\n").slice(-15).join("\n"));
  status = 1;
} finally {
  if (browser) await browser.close();
  if (daemon) await end();
  model.close();
}
process.exit(status);
