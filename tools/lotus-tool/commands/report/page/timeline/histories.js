// Stores the batches of a run with the times of their histories.
"use strict";

const momentNames = ["dispatched", "started", "ready", "waitedFrom", "waitedTo", "consumed", "stepEnd"];

/** The histories of all batches, as columns with one number per batch. An unknown time is NaN. */
class BatchHistories {
  /** @param packed in the format that report/batch_histories.hpp describes */
  constructor(packed) {
    const reader = new NumberReader(packed.histories);
    this.all = packed.all;
    this.index = [];
    this.epoch = [];
    this.track = [];   // track that preprocessed the batch; -1: unknown
    this.onPath = [];  // ns of the batch's preprocessing on the critical path; -1: unknown
    this.outOfOrder = [];
    this.moments = momentNames.map(() => []);
    this.stages = new Map();  // if stages built the batches: for each batch [{name, track, item, start, duration}]
    while (!reader.done) {
      this.index.push(reader.signed());
      this.epoch.push(reader.unsigned());
      this.track.push(reader.unsigned() - 1);
      this.onPath.push(reader.unsigned() - 1);
      this.outOfOrder.push(reader.unsigned() === 1);
      let before = 0;
      for (const moment of this.moments) moment.push(reader.unsigned() ? before += reader.signed() : NaN);
      this.readStages(reader, before);
    }
    this.byIndex = new Map();
    this.index.forEach((index, i) => {
      if (!this.byIndex.has(index)) this.byIndex.set(index, []);
      this.byIndex.get(index).push(i);
    });
  }
  readStages(reader, before) {
    const stages = [];
    for (let n = reader.unsigned(); n > 0; --n) {
      const name = reader.unsigned() - 1;
      const track = reader.unsigned() - 1;
      const item = reader.unsigned() ? reader.signed() : undefined;
      before += reader.unsigned() ? reader.signed() : 0;
      stages.push({ name: name < 0 ? "preprocessing" : shownName(report.op_names[name]), track, item, start: before,
        duration: reader.unsigned() });
    }
    if (stages.length) this.stages.set(this.index.length - 1, stages);
  }
  /** Returns the batch and the item that a thread of a stage worked on at a time: {place, item}; undefined if it is
   * unknown. */
  workOn(track, t) {
    if (!this.work) {
      this.work = new Map();
      for (const [place, stages] of this.stages) {
        for (const of of stages) {
          if (!this.work.has(of.track)) this.work.set(of.track, []);
          this.work.get(of.track).push({ ...of, place });
        }
      }
    }
    return (this.work.get(track) || []).find((of) => of.start <= t && t < of.start + of.duration);
  }
  get length() { return this.index.length; }
  get complete() { return this.length === this.all; }
  moment(i, name) { return this.moments[momentNames.indexOf(name)][i]; }
  between(i, from, to) { return this.moment(i, to) - this.moment(i, from); }
  /** Returns the first and the last known time of a batch. */
  span(i) {
    const known = this.moments.map((moment) => moment[i]).filter((t) => !Number.isNaN(t));
    return known.length ? [Math.min(...known), Math.max(...known)] : undefined;
  }
  /** Returns the index of the batch with this number that was in the pipeline at `t`, or closest to `t`; -1: none. */
  find(index, t) {
    let best = -1;
    let distance = Infinity;
    for (const i of this.byIndex.get(index) || []) {
      const span = this.span(i);
      if (!span) continue;
      const away = Math.max(span[0] - t, t - span[1], 0);
      if (away < distance) { best = i; distance = away; }
    }
    return best;
  }
  /** Returns a batch's number such as "40", and its epoch if there are several. */
  nameOf(i) { return this.index[i] + (this.epochs > 1 ? " of epoch " + this.epoch[i] : ""); }
  get epochs() {
    if (this.epochCount === undefined) this.epochCount = new Set(this.epoch).size;
    return this.epochCount;
  }
  /** Returns the batches in order of consumption, for charts and to find the previous and the next batch. */
  inOrder() {
    if (!this.order) {
      const at = (i) => {
        const consumed = this.moment(i, "consumed");
        return Number.isNaN(consumed) ? this.moment(i, "ready") : consumed;
      };
      this.order = this.index.map((_, i) => i).filter((i) => !Number.isNaN(at(i))).sort((a, b) => at(a) - at(b));
    }
    return this.order;
  }
  /** Returns a counter of batches: how many have reached the moment `from`, but not yet the moment `to`, of their
   * histories. */
  levels(from, to) {
    const steps = [];
    for (let i = 0; i < this.length; ++i) {
      const begin = this.moment(i, from);
      const end = this.moment(i, to);
      if (Number.isNaN(begin) || Number.isNaN(end) || end < begin) continue;
      steps.push([begin, 1], [end, -1]);
    }
    steps.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    const values = [];
    let now = 0;
    for (const [at, by] of steps) {
      now += by;
      if (values.length && values[values.length - 1][0] === at) values[values.length - 1][1] = now;
      else values.push([at, now]);
    }
    return values;
  }
}
