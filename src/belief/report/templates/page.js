"use strict";
// Tables that can be sorted and searched. Without this script they are plain tables.
for (const table of document.querySelectorAll("table.live")) {
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const heads = Array.from(table.tHead.rows[0].cells);
  const words = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });
  const value = (row, column) => row.cells[column].dataset.value ?? row.cells[column].textContent;

  const sort = (column) => {
    const head = heads[column];
    const first = head.dataset.first;
    const other = first === "ascending" ? "descending" : "ascending";
    const order = head.getAttribute("aria-sort") === first ? other : first;
    heads.forEach((h) => h.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1;
    const compare = head.dataset.first === "descending" || head.classList.contains("n") ? (a, b) => parseFloat(a) - parseFloat(b) : words.compare;
    rows.sort((a, b) => sign * compare(value(a, column), value(b, column)));
    body.append(...rows);
  };

  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    button.addEventListener("click", () => sort(column));
    head.replaceChildren(button);
  });

  const form = document.createElement("div");
  const label = document.createElement("label");
  const input = document.createElement("input");
  const found = document.createElement("output");
  form.className = "search";
  label.textContent = "Search";
  input.type = "search";
  input.id = label.htmlFor = table.id + "-search";
  input.autocomplete = "off";
  found.htmlFor = input.id;
  form.append(label, input, found);
  table.parentElement.before(form);
  input.addEventListener("input", () => {
    const wanted = input.value.trim().toLowerCase();
    let shown = 0;
    for (const row of rows) {
      row.hidden = !row.textContent.toLowerCase().includes(wanted);
      shown += row.hidden ? 0 : 1;
    }
    found.textContent = wanted ? shown + " of " + rows.length : "";
  });
}
// Buttons that copy the names of the selected features. Without this script, there are no buttons.
for (const box of document.querySelectorAll(".copy")) {
  const message = document.createElement("output");
  const put = async (text) => {
    if (navigator.clipboard && window.isSecureContext) return navigator.clipboard.writeText(text);
    const area = document.createElement("textarea"); // a page from a file may have no clipboard
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    if (!done) throw new Error("not allowed");
  };
  for (const [kind, label] of [["python", "Copy names as Python"], ["text", "Copy names as text"]]) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = label;
    button.addEventListener("click", () =>
      put(box.dataset[kind]).then(
        () => { message.textContent = "Copied " + box.dataset.n + " names."; },
        () => { message.textContent = "The browser does not allow copying."; },
      ).then(() => button.focus()),
    );
    box.append(button);
  }
  box.append(message);
}
