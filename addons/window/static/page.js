"use strict";
// Everything that is shown is text: nothing that a model or a tool wrote becomes markup.

const byId = (id) => document.getElementById(id);
let showsFlows = true;
const xsrf = document.querySelector("meta[name=xsrf]").content;

function make(tag, text, attributes = {}) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

function table(id, heads, rows, empty) {
  const place = byId(id);
  if (!rows.length) {
    const row = make("tr");
    row.append(make("td", empty, { class: "empty" }));
    place.replaceChildren(row);
    return;
  }
  const head = make("tr");
  head.append(...heads.map((text) => make("th", text)));
  place.replaceChildren(head, ...rows.map((cells) => {
    const row = make("tr");
    row.append(...cells.map((cell, at) => {
      const told = { "data-head": heads[at] };
      if (!(cell instanceof Node)) return make("td", String(cell ?? ""), typeof cell === "number" ? { ...told, class: "number" } : told);
      const held = make("td", undefined, told);
      held.append(cell);
      return held;
    }));
    return row;
  }));
}

async function ask(question) {
  const answer = await fetch("/routecodex/ask", {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-XSRFToken": xsrf },
    body: JSON.stringify(question),
  });
  const told = answer.ok ? await answer.json() : { error: `the proxy said ${answer.status}` };
  byId("said").textContent = told.error ? `Not done: ${told.error}` : (told.changed || told.notes || []).join(" ") || "Done.";
  byId("said").className = told.error ? "bad" : "";
  if (!told.error) byId("target").value = "";
  await show();
}

function button(text, question) {
  const made = make("button", text, { type: "button" });
  made.addEventListener("click", () => ask(question));
  return made;
}

function lines(texts) {
  const list = make("div");
  list.append(...texts.map((text) => {
    const line = make("div");
    line.append(text);
    return line;
  }));
  return list;
}

function tokens(call) {
  if (call.tokens) return whole(`${call.tokens[0].toLocaleString()} + ${call.tokens[1].toLocaleString()}`, "read + written");
  return call.rounds && call.status === "200" ? "unknown" : "";
}

function whole(text, title) {
  return make("span", text, title ? { class: "whole", title } : { class: "whole" });
}

function time(seconds) {
  const shown = new Date(seconds * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
  return whole(shown);
}

function moment(seconds) {
  return whole(new Date(seconds * 1000).toLocaleString([], { dateStyle: "short", timeStyle: "short", hour12: false }));
}

function due(seconds) {
  const shown = moment(seconds);
  if (seconds * 1000 > Date.now()) return shown;
  return lines([shown, make("span", "with its session's next call")]);
}

function session(id) {
  const [, person, rest] = /^(@[^:]*:)?(.*)$/s.exec(id);
  return make("span", (person || "") + rest.slice(0, 12), { class: "whole", title: id });
}

function legs(call) {
  return call.flow && showsFlows ? make("a", "legs", { href: `/#/flows?s=${encodeURIComponent(`~meta ${call.call}`)}` }) : "";
}

function plot(days) {
  const most = Math.max(1, ...days.map((day) => day.totalTokens));
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", `0 0 ${Math.max(14, days.length) * 30} 100`);
  svg.setAttribute("preserveAspectRatio", "xMinYMid meet");
  days.forEach((day, at) => {
    const height = Math.max(1, (day.totalTokens / most) * 80);
    const bar = document.createElementNS(svg.namespaceURI, "rect");
    for (const [name, value] of Object.entries({ x: at * 30 + 2, y: 85 - height, width: 24, height })) bar.setAttribute(name, value);
    const title = document.createElementNS(svg.namespaceURI, "title");
    title.textContent = `${day.date}: ${day.totalTokens.toLocaleString()} tokens`;
    bar.append(title);
    const label = document.createElementNS(svg.namespaceURI, "text");
    label.setAttribute("x", at * 30 + 2);
    label.setAttribute("y", 97);
    label.textContent = day.date.slice(5);
    svg.append(bar, label);
  });
  byId("plot").replaceChildren(svg);
}

function dollars(cost) {
  if (cost >= 0.01 || !cost) return `$${cost.toFixed(2)}`;
  return cost >= 0.0001 ? `$${cost.toFixed(4)}` : "less than $0.0001";
}

function money(totals) {
  const cost = totals.totalCost == null ? "cost unknown" : dollars(totals.totalCost);
  const open = totals.unpricedRequests ? `, ${totals.unpricedRequests} of ${totals.requests} requests without a known price` : "";
  return `${(totals.totalTokens || 0).toLocaleString()} tokens, ${cost}${open}`;
}

function render(told) {
  const { status, models, sessions, calls, usage } = told;
  showsFlows = told.showsFlows;
  byId("flows").hidden = !showsFlows;
  byId("server").textContent = `${(status.listening || []).join(", ")} · ${status.config || ""}`;
  const force = [...(status.routing?.lines || []), ...(status.keys || []), ...(status.warnings || [])];
  byId("routing").replaceChildren(...(force.length ? force : ["Nothing: every call goes where the routes say."]).map((text) => make("li", text)));
  table("calls", ["when", "tool", "what", "where it went, and why", "tokens", ""],
    calls.map((call) => [time(call.time), whole(call.client), call.title, `${call.asked} → ${call.comment} · ${call.status}`, tokens(call), legs(call)]),
    "No call yet.");
  table("sessions", ["session", "tool", "it begins", "in force", "its last call, and why", ""],
    (sessions.sessions || []).map((one) => [session(one.id), whole(one.client || "unknown"), one.begins, lines(one.inForce || []),
      calls.find((call) => call.session === one.id)?.comment, button("erase", { verb: "clear session", id: one.id })]),
    sessions.error || "None: a tag such as <**!glm**> in a chat changes that.");
  table("reminders", ["due", "session", "what"],
    (told.reminders.reminders || []).map((one) => [due(one.due), session(one.session), one.task]),
    told.reminders.error || "None: models set them with the clock.");
  const providers = models.providers || [];
  table("providers", ["provider", "models", "keys", "", ""],
    providers.map((one) => [whole(one.name), lines(one.models.map((model) => whole(model))), [...one.keys, ...one.off.map((key) => `${key} (off)`)].join(", "), lines(one.notes),
      button("disable", { verb: "set routing", orders: [["disable", one.name]] })]),
    "None is configured.");
  byId("targets").replaceChildren(...providers.flatMap((one) => [one.name, ...one.models.map((model) => `${one.name}.${model}`)]).map((value) => make("option", undefined, { value })));
  plot(usage.daily || []);
  byId("used").textContent = `${money(usage.totals || {})}. Prices are of ${usage.pricesOf}, where the configuration names none.`;
}

async function show() {
  try {
    const answer = await fetch("/routecodex/state");
    if (!answer.ok) throw new Error(`the proxy said ${answer.status}`);
    render(await answer.json());
    document.body.dataset.shown = String(Date.now());
  } catch (error) {
    byId("server").textContent = `not reached: ${error.message}`;
  }
}

byId("order").addEventListener("submit", (event) => {
  event.preventDefault();
  ask({ verb: "set routing", orders: [[byId("word").value, byId("target").value]] });
});
byId("clear").addEventListener("click", () => ask({ verb: "set routing", orders: [["clear", ""]] }));
show();
setInterval(() => { if (!document.hidden) show(); }, 2000);
