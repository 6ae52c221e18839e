"use strict";
(() => {
  const root = document.documentElement;
  const all = (what) => [...document.querySelectorAll(what)];

  // Before, after or both.
  const views = all("[data-view]").filter((one) => one !== root);
  for (const button of views) button.addEventListener("click", () => {
    root.dataset.view = button.dataset.view;
    for (const one of views) one.setAttribute("aria-pressed", String(one === button));
  });

  // Downloads: tables of the page become rows again.
  const read = async () => {
    const held = document.getElementById("data");
    if (!("packed" in held.dataset)) return JSON.parse(held.textContent);
    const bytes = Uint8Array.from(atob(held.textContent), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  };
  const rows = (tables) => tables.flatMap(({columns, lines}) =>
    lines.map((line) => Object.fromEntries(columns.map((name, i) => [name, line[i]]))));
  const survey = ({kind, measured, ...rest}) => ({...rest, measured: measured.map((one) => ({...one, rows: rows(one.rows)}))});
  const WHOLE = {
    survey: (it) => survey(it),
    comparison: (it) => ({before: survey(it.before), after: survey(it.after), differences: rows(it.differences), ...it.rest}),
    course: ({kind, rows: own, ...rest}) => ({...rest, rows: rows(own)}),
  };
  const ROWS = {
    survey: (it) => it.measured.flatMap((one) => rows(one.rows)),
    comparison: (it) => rows(it.differences),
    course: (it) => rows(it.rows),
  };
  const cell = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const csv = (table) => {
    const names = [...new Set(table.flatMap((row) => Object.keys(row)))];
    return [names, ...table.map((row) => names.map((name) => row[name]))].map((line) => line.map(cell).join(",")).join("\r\n") + "\r\n";
  };
  const MAKE = {
    csv: (data) => [csv(ROWS[data.kind](data)), "text/csv"],
    json: (data) => [JSON.stringify(WHOLE[data.kind](data)), "application/json"],
  };
  const slug = (document.querySelector("h1").textContent.match(/[A-Za-z0-9]+/g) ?? ["survey"]).join("-").slice(0, 60);
  for (const button of all("[data-save]")) button.addEventListener("click", async () => {
    const [text, type] = MAKE[button.dataset.save](await read());
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], {type: `${type};charset=utf-8`}));
    link.download = `${slug}.${button.dataset.save}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  });
})();
