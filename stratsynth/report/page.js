"use strict";
// Sorting by a click on a heading, numbers as numbers; rows without a number stay last. The end row stays at the end.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, place) => {
    const button = head.querySelector("button");
    if (!button) return;
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.hasAttribute("aria-sort") && other.setAttribute("aria-sort", "none"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const key = (row) => row.cells[place].dataset.k;
      const numeric = [...table.tBodies[0].rows].every((row) => key(row) === undefined || !isNaN(key(row)));
      const rows = [...table.tBodies[0].rows].sort((a, b) => {
        const [x, y] = [key(a), key(b)];
        if (x === undefined || y === undefined) return (x === undefined) - (y === undefined);
        const order = numeric ? Number(x) - Number(y) : x.localeCompare(y);
        return down ? -order : order;
      });
      table.tBodies[0].append(...rows);
    });
  });
}
// One group at a time, where a section has many; without this script all of them are there.
for (const select of document.querySelectorAll("select[data-of]")) {
  const figures = document.getElementById(select.dataset.of).querySelectorAll("figure[data-group]");
  const show = () => figures.forEach((figure) => { figure.hidden = figure.dataset.group !== select.value; });
  select.closest("p").classList.add("ready");
  select.addEventListener("change", show);
  show();
}
// On paper nothing is folded.
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((list) => { list.open = true; }));
// Questions: the answers lie in the page; lists choose among them.
for (const box of document.querySelectorAll("div.ask")) {
  const asked = JSON.parse(box.dataset.asked);
  const made = (tag, text, inside) => {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    if (inside) inside.append(element);
    return element;
  };
  box.querySelector(".unscripted").remove();
  const lists = {};
  const choice = made("p", undefined, box);
  for (const name of ["Columns", "Statistic", "Group", "Level"]) {
    const label = made("label", name + " ", choice);
    lists[name] = made("select", undefined, label);
    choice.append(" ");
  }
  const table = made("table", undefined, box);
  table.className = "stack";
  table.setAttribute("aria-live", "polite");
  const heads = ["", "estimate", "records themselves: from", "to", "as a simple random sample: from", "to"];
  const body = [made("thead", undefined, table), made("tbody", undefined, table)];
  const row = made("tr", undefined, body[0]);
  heads.forEach((text, place) => { made("th", text, row).className = place ? "number" : "text"; });
  const fill = (list, names) => {
    const before = list.value;
    list.replaceChildren(...names.map((name) => made("option", name)));
    if (names.includes(before)) list.value = before;
  };
  const unique = (names) => [...new Set(names)];
  const note = made("p", undefined, box);
  note.className = "note";
  const said = { count: "number of records", rate: "share of the group", number: "mean and quantiles" };
  const number = (value, kind) => {
    if (value === null) return "–";
    if (kind === "rate") return (100 * value).toFixed(1) + " %";
    if (kind === "number") return value.toLocaleString("en", Math.abs(value) < 1e4 ? { maximumSignificantDigits: 5 } : undefined);
    return Math.round(value).toLocaleString("en");
  };
  const show = () => {
    const one = asked.find((some) => some.columns === lists.Columns.value);
    fill(lists.Statistic, unique(one.answers.map((answer) => said[answer[0]])));
    const fitting = one.answers.filter((answer) => said[answer[0]] === lists.Statistic.value);
    fill(lists.Group, unique(fitting.map((answer) => answer[1])));
    fill(lists.Level, ["all", ...one.levels]);
    const answer = fitting.find((some) => some[1] === lists.Group.value);
    body[1].replaceChildren();
    note.textContent = answer[3];
    answer[2].forEach((figures, place) => {
      if (lists.Level.value !== "all" && lists.Level.value !== one.levels[place]) return;
      const line = made("tr", undefined, body[1]);
      const head = made("th", one.levels[place], line);
      head.className = "text";
      head.scope = "row";
      figures.forEach((value, i) => {
        const cell = made("td", number(value, answer[0]), line);
        cell.className = "number";
        cell.dataset.name = heads[i + 1];
      });
    });
  };
  fill(lists.Columns, asked.map((one) => one.columns));
  Object.values(lists).forEach((list) => list.addEventListener("change", show));
  show();
}
