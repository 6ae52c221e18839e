"use strict";
// Ensembles measured on real networks, from the rows of exhibits "path_ensembles".
Object.assign(theodolite.paths, (() => {
  const objects = ({columns, lines}) => lines.map(
    (line) => Object.fromEntries(columns.map((name, i) => [name, line[i]])));
  const known = (value) => typeof value === "number" && Number.isFinite(value);

  // One series a network and side, its ensembles by step. A path that takes k of the
  // L branches has length r = k + 1 in a network of depth p = L + 1.
  const seriesOf = (tables) => {
    const found = new Map();
    for (const table of tables.path_ensembles ?? []) {
      for (const row of objects(table)) {
        if (typeof row.network !== "string" || !known(row.value)) continue;
        const key = [table.study, table.source, row.network, row.of];
        const step = known(row.step) ? row.step : 0;
        const name = JSON.stringify(key);
        if (!found.has(name)) found.set(name, {key, steps: new Map()});
        const {steps} = found.get(name);
        if (!steps.has(step)) steps.set(step, {step, shares: [], errors: [], numbers: {}});
        take(steps.get(step), row);
      }
    }
    return [...found.values()].map(finished).filter((one) => one.ensembles.length);
  };

  const take = (ensemble, row) => {
    if (row.quantity !== "energy") {
      ensemble.numbers[row.quantity] = {value: row.value, error: row.error};
    } else if (Number.isInteger(row.branches) && row.branches >= 0 && row.branches < 5000) {
      ensemble.shares[row.branches] = row.value;
      ensemble.errors[row.branches] = known(row.error) ? row.error : 0;
    }
    if (Number.isInteger(row.blocks)) ensemble.blocks = Math.min(5000, row.blocks);
  };

  const finished = ({key: [study, source, network, of], steps}) => ({
    study, source, network, of: of ?? "output",
    ensembles: [...steps.values()].filter((one) => one.shares.some((share) => share > 0))
      .sort((a, b) => a.step - b.step).map(complete),
  });

  const complete = ({step, shares, errors, numbers, blocks}) => {
    const count = Math.max(shares.length, (blocks ?? 0) + 1);
    const filled = Array.from({length: count}, (_, k) => Math.max(0, shares[k] ?? 0));
    const total = filled.reduce((a, b) => a + b, 0);
    const mixture = {degrees: filled.map((_, k) => k + 1), shares: filled.map((one) => one / total)};
    const moments = theodolite.paths.moments(mixture);
    const fitted = numbers.beta?.value;
    return {
      step, numbers, mixture, depth: count, moments,
      errors: filled.map((_, k) => (errors[k] ?? 0) / total),
      beta: fitted > 0 ? fitted : theodolite.paths.scaleForMean(count, moments.mean),
      fitted: fitted > 0,
      landscape: theodolite.paths.landscape(mixture),
    };
  };

  return {seriesOf};
})());
