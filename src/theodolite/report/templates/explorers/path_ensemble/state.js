"use strict";
// From what is chosen to what is shown: mixtures, numbers and words, no page.
Object.assign(theodolite.paths, (() => {
  const {charts: {number, exponential}, paths} = theodolite;
  const START = {kind: "residual", depth: 100, beta: 0.5, first: 2, second: 3, share: 0.5,
                 size: 10, squared: true, chosen: null, step: 0};

  const MIXTURES = {
    residual: ({depth, beta}) => paths.residual(depth, beta),
    plain: ({depth}) => paths.plain(depth),
    two: ({first, second, share}) => paths.twoDegrees(first, second, share),
  };

  // All that charts and readings need. The plain network beside a mixture has its
  // largest degree, which by Theorem 5 has the largest exponent.
  const stateOf = (choices, series) => {
    const two = choices.kind === "two";
    const depth = two ? Math.max(choices.first, choices.second) : choices.depth;
    const state = {...choices, depth, measured: chosenOf(choices, series)};
    state.mixture = MIXTURES[choices.kind](state);
    state.moments = paths.moments(state.mixture);
    state.landscape = paths.landscape(state.mixture);
    state.ceiling = paths.landscape(paths.plain(depth));
    state.everything = series.flatMap((one) => one.ensembles).filter((one) => one.beta);
    state.told = told(state, series[choices.chosen]);
    return state;
  };

  const chosenOf = ({chosen, step}, series) => series[chosen]?.ensembles[step] ?? null;
  const nameOf = ({network, part, source}) => (
    `${network}, ${part}${source === "committed" ? " (committed run)" : ""}`);

  const WORDS = {
    residual: ({depth, beta}) => `Residual network of depth ${depth} at β = ${number(beta, 3)}`,
    plain: ({depth}) => `Plain network of depth ${depth}`,
    two: ({first, second, share}) => `Degrees ${first} and ${second}, the second with ${Math.round(100 * share)} % of the variance`,
  };
  const told = (state, series) => {
    const {depth, moments, landscape, measured} = state;
    const exponent = landscape ? `θₖ = ${number(landscape.exponent)}` : "no exponent, as nothing has degree 2 or more";
    const after = measured?.step ? ` after ${measured.step} updates` : "";
    const beside = measured ? ` Beside it: ${nameOf(series)}${after}, effective depth ${number(measured.moments.mean)}.` : "";
    return `${WORDS[state.kind](state)}: effective depth ${number(moments.mean)} of ${depth} (half depth ${number(depth / 2)}), ${exponent}.${beside}`;
  };

  // The text of every cell: here, of the plain network, and of the measured one.
  const readings = (state) => {
    const {depth, size, measured, landscape} = state;
    const here = {peak: peakOf(state).join(" and "), beta: state.kind === "residual" ? number(state.beta) : "—"};
    const theirs = {peak: measured && String(heaviest(measured.mixture)), beta: measured?.beta
      ? `${number(measured.beta)}, ${measured.fitted ? "fitted" : "of equal mean"}` : "—"};
    return {
      ...column("here", here, state, size),
      ...column("plain", {peak: String(depth), beta: "—"}, {depth, moments: {mean: depth, spread: 0}, landscape: state.ceiling}, size),
      ...column("measured", theirs, measured ?? {}, size),
      "plain-name": `Plain network, depth ${depth}`,
      size: String(size),
      told: state.told,
      warning: warning(landscape, size),
    };
  };

  const column = (who, {peak, beta}, {depth, moments, landscape}, size) => {
    const x = landscape?.x;
    const [circle, sphere] = landscape ? [paths.circle(x), paths.sphere(x)] : [];
    const cells = {
      peak: peak ?? "—", beta, half: number(depth / 2), mean: number(moments?.mean),
      spread: number(moments?.spread), x: number(x), slope: number(landscape?.slope),
      curvature: number(landscape?.curvature), theta: number(landscape?.exponent),
      like: number(x + 1), "all-2": number(circle?.all), "minima-2": number(circle?.minima),
      "all-3": number(sphere?.all), "minima-3": number(sphere?.minima),
      all: landscape ? exponential(paths.logCriticalPoints(size, x)) : "—",
      minima: landscape ? exponential(paths.logMinima(size, x)) : "—",
      asymptotic: landscape ? exponential(size * landscape.exponent) : "—",
    };
    return Object.fromEntries(Object.entries(cells).map(([name, text]) => [`${name}-${who}`, text]));
  };

  const heaviest = ({degrees, shares}) => degrees[shares.indexOf(Math.max(...shares))] ?? "—";
  const peakOf = ({kind, depth, beta, mixture}) => (
    kind === "residual" ? paths.peaks(depth, beta) : [heaviest(mixture)]);

  const warning = (landscape, size) => {
    if (!landscape) return "Eq 31 and the counts need a degree of 2 or more: choose a depth of at least 2.";
    const {x, exponent} = landscape;
    const [all, minima] = [paths.logCriticalPoints(size, x) / size, paths.logMinima(size, x) / size];
    return `θₖ is a limit that is reached slowly, with errors that shrink like 1/√Λ: e^(Λθₖ) is no count. At Λ = ${size}, ln(mean count)/Λ is ${number(minima, 3)} for minima, whose limit, as of each fixed index, is θₖ = ${number(exponent, 3)}; and ${number(all, 3)} for all critical points together, whose limit is ½ ln x = ${number(Math.log(x) / 2, 3)}.`;
  };

  return {START, stateOf, chosenOf, nameOf, readings};
})());
