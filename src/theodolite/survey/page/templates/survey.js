"use strict";
(() => {
  const all = (what) => [...document.querySelectorAll(what)];

  // Downloads: tables of the page become rows again.
  const read = () => JSON.parse(document.getElementById("data").textContent);
  const rows = (tables) => tables.flatMap(({columns, lines}) =>
    lines.map((line) => Object.fromEntries(columns.map((name, i) => [name, line[i]]))));
  const cell = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const csv = (table) => {
    const names = [...new Set(table.flatMap((row) => Object.keys(row)))];
    return [names, ...table.map((row) => names.map((name) => row[name]))].map((line) => line.map(cell).join(",")).join("\r\n") + "\r\n";
  };
  const MAKE = {
    csv: (it) => [csv(it.measured.flatMap((one) => rows(one.rows))), "text/csv"],
    json: (it) => [JSON.stringify({...it, measured: it.measured.map((one) => ({...one, rows: rows(one.rows)}))}), "application/json"],
  };
  const slug = (document.querySelector("h1").textContent.match(/[A-Za-z0-9]+/g) ?? ["survey"]).join("-").slice(0, 60);
  for (const button of all("[data-save]")) button.addEventListener("click", () => {
    const [text, type] = MAKE[button.dataset.save](read());
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], {type: `${type};charset=utf-8`}));
    link.download = `${slug}.${button.dataset.save}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  });
})();
