"use strict";
// Ensembles measured on real networks, from the rows of exhibits "path_ensembles".
Object.assign(theodolite.paths, (() => {
  const objects = ({columns, lines}) => lines.map(
    (line) => Object.fromEntries(columns.map((name, i) => [name, line[i]])));
  const known = (value) => typeof value === "number" && Number.isFinite(value);

  // One series a network and part, its ensembles by step. A path that takes k of the
  // L branches has length r = k + 1 in a network of depth p = L + 1.
  const seriesOf = (tables) => {
    const found = new Map();
    for (const table of tables.path_ensembles ?? []) {
      for (const row of objects(table)) {
        if (typeof row.network !== "string" || !known(row.value)) continue;
        const key = [table.study, table.source, row.network, row.part];
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
  const take = (ensemble, {quantity, length, value, error}) => {
    if (!["share", "law"].includes(quantity)) {
      ensemble.numbers[quantity] = {value, error};
    } else if (Number.isInteger(length) && length >= 0 && length < MOST) {
      ensemble[quantity][length] = value;
      if (quantity === "share") ensemble.error[length] = known(error) ? error : 0;
    }
  };

  const finished = ({key: [study, source, network, part], steps}) => ({
    study, source, network, part: part ?? "output",
    ensembles: [...steps.values()].filter(({share}) => share.some((one) => one > 0))
      .sort((a, b) => a.step - b.step).map(complete),
  });

  const complete = ({step, share, error, law, numbers}) => {
    const depth = share.length;
    const filled = Array.from(share, (one) => Math.max(0, one ?? 0));
    const total = filled.reduce((a, b) => a + b, 0);
    const mixture = {degrees: filled.map((_, k) => k + 1), shares: filled.map((one) => one / total)};
    const moments = theodolite.paths.moments(mixture);
    const fitted = numbers.beta?.value;
    return {
      step, depth, mixture, moments,
      errors: filled.map((_, k) => (error[k] ?? 0) / total),
      law: Array.from(law, (one, k) => [k + 1, Math.max(0, one ?? 0)]),
      beta: fitted > 0 ? fitted : theodolite.paths.scaleForMean(depth, moments.mean),
      fitted: fitted > 0,
      landscape: theodolite.paths.landscape(mixture),
    };
  };

  return {seriesOf};
})());
