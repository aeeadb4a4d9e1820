// Tables that are sorted by the column whose header the user presses. The rows of each run stay together.
"use strict";

/** Defines a column: header, meaning, content of a cell (a text or an element), and the value to sort by. */
function column(title, tip, content, value) { return { title, tip, content, value, isMinor: false, isText: false }; }

/** The same for a column of words, which are aligned to the left. */
function textColumn(title, tip, content, value) { return { ...column(title, tip, content, value), isText: true }; }

/** Returns the classes of a column's cells. */
function classesOf(of) { return [of.isMinor ? "minor" : "", of.isText ? "text" : ""].filter((name) => name).join(" "); }

const rowsAtFirst = 100;  // a table with more rows for a run has a button for the others

/** Returns the columns so that on narrow screens only those with one of the given titles are visible. */
function withMainColumns(columns, titles) { return columns.map((of) => ({ ...of, isMinor: !titles.includes(of.title) })); }

const timeColumn = (title, key, tip) => column(title, tip, (of) => humanTime(of[key]), (of) => of[key]);
const bytesColumn = (title, key, tip) => column(title, tip, (of) => humanBytes(of[key]), (of) => of[key]);
const shareColumn = (title, key, tip) =>
  column(title, tip, (of) => of[key] === null || of[key] === undefined ? "–" : percent(of[key]), (of) => of[key]);
const shareColumnOf = (title, tip, share) =>
  column(title, tip, (of) => share(of) === null || share(of) === undefined ? "–" : percent(share(of)), share);
const countColumn = (title, key, tip) => column(title, tip, (of) => grouped(of[key]), (of) => of[key]);

class SortedTable {
  /** Draws the table. @param {string[]} head title and meaning of the first column @param {any} name returns the first
   * cell of a row @param {(run: any) => any[]} rowsOf returns a run's rows in the unsorted order @param {any[]} runs */
  constructor(table, head, columns, name, rowsOf, runs = report.runs) {
    this.table = table;
    this.columns = columns;
    this.name = name;
    this.rowsOf = rowsOf;
    this.runs = runs;
    this.by = undefined;  // title of the column that the table is sorted by
    this.falling = true;
    this.onSort = () => {};
    this.isWhole = false;
    const titles = element("tr");
    titles.append(headCell(head[0], head[1]));
    this.offerAll();
    this.heads = columns.map((of) => {
      const cell = headCell("", of.tip + (of.value ? "; press to sort" : ""));
      if (of.value) {
        const button = element("button", of.title, "sort");
        button.type = "button";
        button.addEventListener("click", () => { this.sort(of.title, this.by === of.title ? !this.falling : true); this.onSort(); });
        cell.append(button);
      } else {
        cell.append(of.title);
      }
      cell.className = classesOf(of);
      titles.append(cell);
      return cell;
    });
    this.body = element("tbody");
    table.replaceChildren(element("thead", titles), this.body);
    this.fill();
  }

  /** Adds a button for narrow screens, where page.css hides the less important columns until it is pressed. */
  offerAll() {
    if (!this.columns.some((of) => of.isMinor)) return;
    const { classList } = this.table;
    const button = element("button", "All columns", "all-columns");
    button.type = "button";
    button.setAttribute("aria-pressed", "false");
    button.addEventListener("click", () => { button.setAttribute("aria-pressed", String(!classList.toggle("brief"))); });
    classList.add("brief");
    this.table.parentElement.before(button);
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

  /** Adds a button that shows the rows that are left out. */
  offerRows(count) {
    const cell = element("td", linkTo("Show " + grouped(count) + " more", () => { this.isWhole = true; this.fill(); }));
    cell.colSpan = this.columns.length + 1;
    this.body.append(element("tr", cell, "more"));
  }

  fill() {
    this.body.replaceChildren();
    this.columns.forEach((of, i) => {
      if (of.title === this.by) this.heads[i].setAttribute("aria-sort", this.falling ? "descending" : "ascending");
      else this.heads[i].removeAttribute("aria-sort");
    });
    for (const run of this.runs) {
      const rows = this.sorted(this.rowsOf(run));
      if (this.runs.length > 1 && rows.length) {
        const row = element("tr", undefined, "run");
        const cell = element("th", run.name);
        cell.scope = "rowgroup";
        cell.colSpan = this.columns.length + 1;
        row.append(cell);
        this.body.append(row);
      }
      const shown = this.isWhole ? rows : rows.slice(0, rowsAtFirst);
      for (const of of shown) {
        const row = element("tr");
        const name = element("th", undefined, "name");
        name.scope = "row";
        name.title = of.name;
        name.append(this.name(of, run));
        row.append(name);
        for (const one of this.columns) row.append(element("td", one.content(of, run), classesOf(one)));
        this.body.append(row);
      }
      if (shown.length < rows.length) this.offerRows(rows.length - shown.length);
    }
  }
}
