"use strict";
// Path weights of a residual network: how much paths of each length weigh.
globalThis.theodolite ??= {};
theodolite.paths = (() => {
  const sum = (values) => values.reduce((total, one) => total + one, 0);

  // Eq 16: ε_r = C(p-1, r-1) β^r / z for r = 1…p, Σε² = 1. Ratios of neighbours are
  // β (p-r) / r; their logarithms, summed from the largest weight outwards, neither
  // overflow nor lose digits at any depth.
  const logWeights = (depth, beta) => {
    const ratio = (r) => Math.log(beta) + Math.log(depth - r) - Math.log(r);
    const top = peaks(depth, beta)[0];
    const logs = new Array(depth).fill(0);
    for (let r = top; r < depth; r += 1) logs[r] = logs[r - 1] + ratio(r);
    for (let r = top - 1; r >= 1; r -= 1) logs[r - 1] = logs[r] - ratio(r);
    const norm = Math.log(sum(logs.map((one) => Math.exp(2 * one)))) / 2;
    return logs.map((one) => one - norm);
  };

  const weights = (depth, beta) => logWeights(depth, beta).map(Math.exp);

  // The largest weight is at ⌈pβ/(1+β)⌉, and at the next length too where β(p-r) = r.
  const peaks = (depth, beta) => {
    const near = (depth * beta) / (1 + beta);
    const whole = Math.round(near);
    const tied = whole >= 1 && whole < depth
      && Math.abs(beta * (depth - whole) - whole) <= 1e-12 * whole;
    if (tied) return [whole, whole + 1];
    return [Math.min(depth, Math.max(1, Math.ceil(near)))];
  };

  // A mixture lists its degrees with their shares of the variance, ε².
  const residual = (depth, beta) => ({
    degrees: Array.from({length: depth}, (_, index) => index + 1),
    shares: weights(depth, beta).map((one) => one * one),
  });
  const plain = (depth) => ({degrees: [depth], shares: [1]});
  const twoDegrees = (first, second, share) => (
    {degrees: [first, second], shares: [1 - share, share]});

  // Mean and standard deviation of the degree under the shares.
  const moments = ({degrees, shares}) => {
    const total = sum(shares);
    const mean = sum(degrees.map((r, i) => r * shares[i])) / total;
    const spread = sum(degrees.map((r, i) => (r - mean) ** 2 * shares[i])) / total;
    return {mean, variance: spread, spread: Math.sqrt(spread)};
  };

  // The β at which a network of this depth has this mean, which grows with β.
  const scaleForMean = (depth, mean) => {
    if (!(mean > 1 && mean < depth)) return null;
    let [low, high] = [-30, 30];
    for (let turn = 0; turn < 80; turn += 1) {
      const middle = (low + high) / 2;
      if (moments(residual(depth, Math.exp(middle))).mean < mean) low = middle;
      else high = middle;
    }
    return Math.exp((low + high) / 2);
  };

  return {logWeights, weights, peaks, residual, plain, twoDegrees, moments, scaleForMean};
})();
