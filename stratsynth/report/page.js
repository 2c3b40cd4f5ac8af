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
