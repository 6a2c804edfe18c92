"use strict";
const form = document.querySelector("form");
const rows = [...document.querySelectorAll("details.question")];
const count = document.querySelector("output");
const texts = new Map();
function textOf(row) {
  if (!texts.has(row)) texts.set(row, row.textContent.toLowerCase());
  return texts.get(row);
}
function narrow() {
  const wanted = Object.fromEntries(new FormData(form));
  const words = wanted.text.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const row of rows) {
    const fits = ["verdict", "cause", "category", "mark"].every((n) => !wanted[n] || row.dataset[n] === wanted[n]);
    row.hidden = !(fits && words.every((word) => textOf(row).includes(word)));
    shown += row.hidden ? 0 : 1;
  }
  count.textContent = shown + " of " + rows.length + " shown";
}
function open(yes) { for (const row of rows) if (!row.hidden) row.open = yes; }
form.hidden = false;
form.addEventListener("input", narrow);
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("reset", () => setTimeout(narrow));
document.getElementById("open").addEventListener("click", () => open(true));
document.getElementById("close").addEventListener("click", () => open(false));
addEventListener("beforeprint", () => open(true));
addEventListener("keydown", (event) => {
  if (event.key === "/" && !event.target.matches("input, select")) { event.preventDefault(); form.text.focus(); }
});
narrow();
