// Tables that sort by a click on a heading and show the rows that contain every word of the filter. A long table shows
// its first rows until the others are requested.
const tables = (() => {
  const FEW = 8, FIRST = 25;

  const value = (row, column) => {
    const cell = row.cells[column];
    const number = cell.dataset.v;
    return number !== undefined ? Number(number) : cell.textContent.trim();
  };

  const unknown = (found) => found === "" || found === "-";

  // Unknown values stay last either way; numbers go before texts; equal rows keep the order that they came in.
  const compare = (one, other, sign) => {
    if (unknown(one) || unknown(other)) return Number(unknown(one)) - Number(unknown(other));
    if (typeof one === "number" && typeof other === "number") return sign * (one - other);
    if (typeof one !== typeof other) return typeof one === "number" ? -1 : 1;
    return sign * one.localeCompare(other, "en", { numeric: true });
  };

  const next = (heading) => {
    const before = heading.getAttribute("aria-sort");
    if (before === null) return heading.classList.contains("n") ? "descending" : "ascending";
    return before === "ascending" ? "descending" : "ascending";
  };

  const sort = (table, heading, rows, order) => {
    const column = heading.cellIndex;
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1;
    const sorted = rows.map((row) => [value(row, column), row]).sort((a, b) => compare(a[0], b[0], sign));
    table.tBodies[0].append(...sorted.map(([, row]) => row));
  };

  // Hides the rows that do not match the filter, and those after the first rows that do; returns how many rows match.
  const show = (table, words, most) => {
    const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
    let matching = 0;
    for (const row of table.tBodies[0].rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !wanted.every((word) => text.includes(word));
      matching += row.hidden ? 0 : 1;
      row.classList.toggle("more", !row.hidden && matching > most);
    }
    return matching;
  };

  const enliven = (box) => {
    const table = box.querySelector("table");
    const rows = [...table.tBodies[0].rows];
    if (rows.length < 2) return;
    const input = document.createElement("input"), count = document.createElement("span"), all = document.createElement("button");
    const update = () => {
      const most = all.ariaPressed === "true" ? Infinity : FIRST;
      const matching = show(table, input.value, most);
      count.textContent = input.value.trim() ? `${matching} of ${rows.length} rows` : `${rows.length} rows`;
      all.hidden = matching <= FIRST;
      all.textContent = most === Infinity ? `the first ${FIRST}` : `all ${matching}`;
    };
    for (const heading of table.tHead.rows[0].cells) {
      const button = document.createElement("button");
      button.type = "button";
      button.title = "sort";
      button.textContent = heading.textContent || "·";
      heading.replaceChildren(button);
      button.addEventListener("click", () => { sort(table, heading, rows, next(heading)); update(); });
    }
    if (rows.length < FEW) return;
    const tools = document.createElement("div");
    tools.className = "tools";
    input.type = "search";
    input.placeholder = "filter";
    input.setAttribute("aria-label", "show the rows that hold these words");
    input.addEventListener("input", update);
    all.type = "button";
    all.ariaPressed = "false";
    all.addEventListener("click", () => { all.ariaPressed = all.ariaPressed === "true" ? "false" : "true"; update(); });
    tools.append(input, count, all);
    box.prepend(tools);
    update();
  };

  return {
    enliven: (root) => root.querySelectorAll(".table").forEach(enliven),
  };
})();
