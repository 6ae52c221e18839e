"use strict";
// What each of the four charts shows of a state.
theodolite.paths.drawings = (() => {
  const {charts, paths} = theodolite;
  const BETAS = Array.from({length: 121}, (_, i) => 10 ** (-2 + i / 30));
  const BARS = 160; // more than that are drawn as an area

  // Effective depth and exponent of residual networks over β, for the last depth asked.
  let last = {depth: null};
  const curves = (depth) => {
    if (last.depth !== depth) {
      const mixtures = BETAS.map((beta) => paths.residual(depth, beta));
      last = {
        depth,
        means: mixtures.map((one, i) => [BETAS[i], paths.moments(one).mean / depth]),
        exponents: mixtures.map((one, i) => [BETAS[i], paths.landscape(one)?.exponent])
          .filter(([, value]) => value !== undefined),
      };
    }
    return last;
  };

  const weights = ({mixture, depth, moments, squared, measured, told}) => {
    const shown = (share) => (squared ? share : Math.sqrt(share));
    const points = mixture.degrees.map((r, i) => [r, shown(mixture.shares[i])]);
    const seen = measured ? measured.mixture.degrees.map((r, i) => {
      const share = measured.mixture.shares[i];
      const error = squared || !(share > 0) ? measured.errors[i] : measured.errors[i] / (2 * Math.sqrt(share));
      return [r, shown(share), error];
    }) : [];
    const most = Math.max(...points.map(([, y]) => y), ...seen.map(([, y]) => y));
    const longest = Math.max(depth, ...mixture.degrees, measured?.depth ?? 1);
    const many = points.length > BARS;
    return {
      x: {from: 0.5, to: longest + 0.5, whole: true, label: "path length r"},
      y: {from: 0, to: most * 1.15, label: squared ? "share of variance ε²" : "weight ε"},
      marks: [
        {kind: "band", name: "spread", from: moments.mean - moments.spread, to: moments.mean + moments.spread},
        {kind: "upright", name: "mean", at: moments.mean},
        {kind: many ? "area" : "bars", name: "theory", points, width: Math.max(0.8, longest / 400)},
        {kind: "upright", name: "half", at: depth / 2},
        ...(measured ? [{kind: "upright", name: "measured", at: measured.moments.mean}] : []),
        {kind: "line", name: "law", points: (measured?.law ?? []).map(([r, share]) => [r, shown(share)])},
        {kind: "dots", name: "measured", points: seen, radius: seen.length > 60 ? 2.2 : 3.2},
      ],
      label: `Weights of paths by their length. ${told}`,
    };
  };

  const depths = ({depth, kind, beta, moments, everything, measured, told}) => ({
    x: {from: 0.01, to: 100, log: true, label: "scale β"},
    y: {from: 0, to: 1.02, label: "effective depth / p"},
    marks: [
      {kind: "level", name: "half", at: 0.5},
      {kind: "line", name: "limit", points: BETAS.map((one) => [one, one / (1 + one)])},
      {kind: "line", name: "theory", points: curves(depth).means},
      {kind: "dots", name: "others", points: everything.map((one) => [one.beta, one.moments.mean / one.depth])},
      {kind: "dots", name: "measured", points: measured?.beta ? [[measured.beta, measured.moments.mean / measured.depth]] : [], radius: 5},
      kind === "residual" ? {kind: "dots", name: "here", points: [[beta, moments.mean / depth]], radius: 5}
        : {kind: "level", name: "mean", at: moments.mean / depth},
    ],
    label: `Effective depth over β. ${told}`,
  });

  const exponents = ({depth, kind, beta, landscape, ceiling, everything, measured, told}) => {
    const seen = everything.filter((one) => one.landscape && one.beta);
    const most = Math.max(0.02, ceiling?.exponent ?? 0, ...seen.map((one) => one.landscape.exponent));
    const at = landscape ? [[beta, landscape.exponent]] : [];
    return {
      x: {from: 0.01, to: 100, log: true, label: "scale β"},
      y: {from: 0, to: most * 1.06, label: "exponent θₖ"},
      marks: [
        ...(ceiling ? [{kind: "level", name: "plain", at: ceiling.exponent}] : []),
        {kind: "line", name: "theory", points: curves(depth).exponents},
        {kind: "dots", name: "others", points: seen.map((one) => [one.beta, one.landscape.exponent])},
        {kind: "dots", name: "measured", points: measured?.landscape && measured.beta ? [[measured.beta, measured.landscape.exponent]] : [], radius: 5},
        ...(landscape && kind !== "residual" ? [{kind: "level", name: "mean", at: landscape.exponent}] : []),
        {kind: "dots", name: "here", points: kind === "residual" ? at : [], radius: 5},
      ],
      label: `Exponent of critical points over β. ${told}`,
    };
  };

  // Logarithm of the mean count per dimension, and where it goes.
  const counts = ({landscape, size, told}) => {
    const x = landscape?.x ?? 1;
    const sizes = landscape ? paths.dimensions() : [];
    const all = sizes.map((n) => [n, paths.logCriticalPoints(n, x) / n]);
    const minima = sizes.map((n) => [n, paths.logMinima(n, x) / n]);
    const bulk = Math.log(x) / 2;
    const top = Math.max(0.1, ...all.map(([, y]) => y));
    const level = (name, at) => (landscape ? [{kind: "level", name, at}] : []);
    return {
      x: {from: 2, to: 200, log: true, label: "dimension Λ"},
      y: {from: 0, to: top * 1.05, label: "ln(mean count) / Λ"},
      marks: [
        ...level("limit", bulk), ...level("plain", landscape?.exponent),
        {kind: "line", name: "theory", points: all},
        {kind: "line", name: "minima", points: minima},
        {kind: "dots", name: "here", points: [...all, ...minima].filter(([n]) => n === size), radius: 5},
      ],
      label: `Mean numbers of critical points over the dimension. ${told}`,
    };
  };

  return {weights, depths, exponents, counts,
          draw: (svg, name, state) => charts.draw(svg, {weights, depths, exponents, counts}[name](state))};
})();
