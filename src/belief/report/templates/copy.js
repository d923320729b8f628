// Buttons that copy the names of the selected features. Without this script there are none.
for (const box of document.querySelectorAll(".copy")) {
  const told = document.createElement("output");
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
        () => { told.textContent = "Copied " + box.dataset.n + " names."; },
        () => { told.textContent = "The browser does not allow it."; },
      ).then(() => button.focus()),
    );
    box.append(button);
  }
  box.append(told);
}
