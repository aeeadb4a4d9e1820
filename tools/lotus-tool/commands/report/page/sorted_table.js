// Tables that are sorted by the column whose header is pressed; the rows of each run stay together.
"use strict";

/** A column: its header, the content of a cell (a text or an element), and the value that it is sorted by. */
function column(title, content, value) { return { title, content, value }; }

const timeColumn = (title, key) => column(title, (of) => humanTime(of[key]), (of) => of[key]);
const shareColumn = (title, key) => column(title, (of) => of[key] === null || of[key] === undefined ? "–" : percent(of[key]),
  (of) => of[key]);
const countColumn = (title, key) => column(title, (of) => grouped(of[key]), (of) => of[key]);

class SortedTable {
  /** @param {any} name makes the first cell of a row @param {(run: any) => any[]} rowsOf in the order without sorting */
  constructor(table, head, columns, name, rowsOf) {
    this.table = table;
    this.columns = columns;
    this.name = name;
    this.rowsOf = rowsOf;
    this.by = undefined;  // title of a column
    this.falling = true;
    this.onSort = () => {};
    const titles = element("tr");
    const first = element("th", head);
    first.scope = "col";
    titles.append(first);
    this.heads = columns.map((of) => {
      const cell = element("th");
      cell.scope = "col";
      if (of.value) {
        const button = element("button", of.title, "sort");
        button.type = "button";
        button.addEventListener("click", () => { this.sort(of.title, this.by === of.title ? !this.falling : true); this.onSort(); });
        cell.append(button);
      } else {
        cell.append(of.title);
      }
      titles.append(cell);
      return cell;
    });
    this.body = element("tbody");
    table.replaceChildren(element("thead", titles), this.body);
    this.fill();
  }

  get state() { return this.by === undefined ? undefined : this.by + (this.falling ? "" : " up"); }
  set state(text) {
    const rising = text.endsWith(" up");
    this.sort(rising ? text.slice(0, -3) : text, !rising);
  }

  sort(title, falling) {
    const by = this.columns.find((of) => of.title === title && of.value);
    if (!by) return;
    this.by = title;
    this.falling = falling;
    this.fill();
  }

  sorted(rows) {
    const by = this.columns.find((of) => of.title === this.by);
    if (!by) return rows;
    const known = (value) => value === undefined || value === null ? -Infinity : value;
    return [...rows].sort((a, b) => (known(by.value(b)) - known(by.value(a)) || 0) * (this.falling ? 1 : -1));
  }

  fill() {
    this.body.replaceChildren();
    this.columns.forEach((of, i) => {
      if (of.title === this.by) this.heads[i].setAttribute("aria-sort", this.falling ? "descending" : "ascending");
      else this.heads[i].removeAttribute("aria-sort");
    });
    for (const run of report.runs) {
      const rows = this.sorted(this.rowsOf(run));
      if (report.runs.length > 1 && rows.length) {
        const row = element("tr", undefined, "run");
        const cell = element("th", run.name);
        cell.scope = "rowgroup";
        cell.colSpan = this.columns.length + 1;
        row.append(cell);
        this.body.append(row);
      }
      for (const of of rows) {
        const row = element("tr");
        const name = element("th", undefined, "name");
        name.scope = "row";
        name.title = of.name;
        name.append(this.name(of, run));
        row.append(name);
        for (const { content } of this.columns) row.append(element("td", content(of, run)));
        this.body.append(row);
      }
    }
  }
}
