"use strict";
// Ensembles measured on real networks, from the rows of exhibits "path_ensembles".
Object.assign(theodolite.paths, (() => {
  // Words are places in a list of them per column.
  const objects = ({columns, texts, lines}) => lines.map((line) => Object.fromEntries(
    columns.map((name, i) => [name, texts?.[name]?.[line[i]] ?? line[i]])));
  const known = (value) => typeof value === "number" && Number.isFinite(value);

  // One series a network and part, its ensembles by step. A path that takes k of the
  // L branches has length r = k + 1 in a network of depth p = L + 1.
  const seriesOf = (tables) => {
    const found = new Map();
    for (const table of tables.path_ensembles ?? []) {
      for (const row of objects(table)) {
        if (typeof row.network !== "string" || !known(row.value)) continue;
        const part = typeof row.part === "string" ? row.part : "output";
        const key = [table.study, table.source, row.network, part];
        const step = known(row.step) ? row.step : 0;
        const name = JSON.stringify(key);
        if (!found.has(name)) found.set(name, {key, steps: new Map()});
        const {steps} = found.get(name);
        if (!steps.has(step)) steps.set(step, {step, share: [], error: [], law: [], numbers: {}});
        take(steps.get(step), row);
      }
    }
    return [...found.values()].map(finished).filter((one) => one.ensembles.length);
  };

  const MOST = 5000; // lengths beyond that are no network's
  const place = (value) => Number.isInteger(value) && value >= 0 && value < MOST;
  const take = (ensemble, {quantity, length, blocks, value, error}) => {
    if (place(blocks)) ensemble.blocks = blocks;
    if (["effective_depth", "spread", "beta"].includes(quantity)) {
      ensemble.numbers[quantity] = value;
    } else if (["share", "law"].includes(quantity) && place(length)) {
      ensemble[quantity][length] = value;
      if (quantity === "share") ensemble.error[length] = known(error) ? error : 0;
    }
  };

  const finished = ({key: [study, source, network, part], steps}) => ({
    study, source, network, part,
    ensembles: [...steps.values()].map(complete).filter(Boolean).sort((a, b) => a.step - b.step),
  });

  // Shares by length where they are given, else mean and spread alone.
  const complete = (raw) => {
    const found = raw.share.some((one) => one > 0) ? fromShares(raw) : fromMoments(raw);
    if (!found) return null;
    const {beta} = raw.numbers;
    return {
      ...found,
      step: raw.step,
      law: Array.from(raw.law, (one, k) => [k + 1, Math.max(0, one ?? 0)]),
      beta: beta > 0 ? beta : theodolite.paths.scaleForMean(found.depth, found.moments.mean),
      fitted: beta > 0,
    };
  };
  const fromShares = ({share, error}) => {
    const filled = Array.from(share, (one) => Math.max(0, one ?? 0));
    const total = filled.reduce((a, b) => a + b, 0);
    const mixture = {degrees: filled.map((_, k) => k + 1), shares: filled.map((one) => one / total)};
    const errors = filled.map((_, k) => (error[k] ?? 0) / total);
    const {moments, landscape} = theodolite.paths;
    return {depth: filled.length, mixture, errors, moments: moments(mixture), landscape: landscape(mixture)};
  };
  const fromMoments = ({blocks, numbers: {effective_depth: mean, spread}}) => {
    if (blocks === undefined || !(mean >= 0 && mean <= blocks)) return null;
    return {depth: blocks + 1, mixture: {degrees: [], shares: []}, errors: [],
            moments: {mean: mean + 1, spread}, landscape: null};
  };

  return {seriesOf};
})());
