"use strict";
// Critical points of the spin glass that has a mixture of degrees.
Object.assign(theodolite.paths, (() => {
  // Definition 3 and Eq 31. Degree 1 is dropped, so that x = v''/v' is at least 1, as
  // the formula needs; null where nothing of degree 2 or more is left.
  const landscape = ({degrees, shares}) => {
    let [total, first, second] = [0, 0, 0];
    degrees.forEach((r, i) => {
      if (r < 2) return;
      total += shares[i];
      first += shares[i] * r;
      second += shares[i] * r * (r - 1);
    });
    if (!(total > 0)) return null;
    const [slope, curvature] = [first / total, second / total];
    const x = second / first;
    return {slope, curvature, x, variance: curvature + slope - slope ** 2,
            exponent: exponent(x)};
  };

  // θ_k for every fixed index k, minima included.
  const exponent = (x) => {
    const t = (x - 1) / (x + 1);
    // ½ ln x = artanh t: near t = 0 the two terms would cancel.
    return t < 0.01 ? t ** 3 * (1 / 3 + t ** 2 * (1 / 5 + t ** 2 / 7)) : Math.log(x) / 2 - t;
  };

  // Closed forms on the circle and on the sphere: all critical points, minima.
  const circle = (x) => ({all: 2 * Math.sqrt(3 * x + 1), minima: Math.sqrt(3 * x + 1)});
  const sphere = (x) => {
    const part = (2 * x ** 1.5) / Math.sqrt(3 * x + 1);
    return {all: 2 + 4 * part, minima: 1 + part};
  };

  // Mean density of all n eigenvalues of a GOE matrix with weight exp(-Σy²/2): that of
  // the GUE, and what Mehta adds to it. It is even, and kept from 0 on.
  const densities = new Map();
  const density = (n) => {
    if (!densities.has(n)) densities.set(n, eigenvalueDensity(n));
    return densities.get(n);
  };
  const eigenvalueDensity = (n) => {
    const reach = Math.sqrt(2 * n) + 7;
    const count = Math.ceil(reach * Math.max(16, 5 * Math.sqrt(n)));
    const step = reach / count;
    // The integral of φ_{n-1} over the line, by which odd sizes divide.
    let line = Math.SQRT2 * Math.PI ** 0.25;
    for (let j = 1; j < n; j += 2) line *= Math.sqrt(j / (j + 1));
    const values = [];
    let bell = 0; // ∫ φ_0 from 0 to y
    for (let place = 0; place <= count; place += 1) {
      const y = place * step;
      if (place) bell += bellBetween(y - step, y);
      const {squares, last, integral} = hermite(n, y, bell);
      const odd = n % 2 ? last / line : 0;
      values.push(squares + Math.sqrt(n / 2) * last * integral + odd);
    }
    return {step, values};
  };

  // Hermite functions at y: Σφ_j² below n, φ_{n-1}, and ∫ sgn(y-t) φ_n(t) dt / 2. The
  // integrals I_j, from 0 for even and from -∞ for odd j, obey
  // √((j+1)/2) I_{j+1} = √(j/2) I_{j-1} - φ_j.
  const hermite = (n, y, bell) => {
    const phi = [Math.PI ** -0.25 * Math.exp((-y * y) / 2)];
    phi.push(Math.SQRT2 * y * phi[0]);
    for (let j = 1; j < n; j += 1) {
      phi.push(Math.sqrt(2 / (j + 1)) * y * phi[j] - Math.sqrt(j / (j + 1)) * phi[j - 1]);
    }
    let integral = n % 2 ? -Math.SQRT2 * phi[0] : bell;
    for (let j = n % 2 ? 2 : 1; j < n; j += 2) {
      integral = (Math.sqrt(j / 2) * integral - phi[j]) / Math.sqrt((j + 1) / 2);
    }
    let squares = 0;
    for (let j = 0; j < n; j += 1) squares += phi[j] ** 2;
    return {squares, last: phi[n - 1], integral};
  };

  // ∫ φ_0 over a short interval: four points of Gauss and Legendre.
  const NODES = [[0.3399810435848563, 0.6521451548625461],
                 [0.8611363115940526, 0.3478548451374538]];
  const bellBetween = (from, to) => {
    const [centre, half] = [(from + to) / 2, (to - from) / 2];
    const bell = (y) => Math.PI ** -0.25 * Math.exp((-y * y) / 2);
    return half * NODES.reduce((total, [node, weight]) => total
      + weight * (bell(centre - half * node) + bell(centre + half * node)), 0);
  };

  // log of the mean number of all critical points on the sphere in n dimensions, by Kac
  // and Rice: 2√2 x^{n/2} / √(1+x) · E Σ exp(-(x-1)/(4(x+1)) λ²) over a GOE matrix, in
  // which λ = √2 y. The integrand is smooth and dies out: the trapezium rule is exact.
  const logCriticalPoints = (n, x) => {
    const {step, values} = density(n);
    const rate = (x - 1) / (2 * (x + 1));
    let total = values[0] / 2;
    for (let place = 1; place < values.length; place += 1) {
      total += values[place] * Math.exp(-rate * (place * step) ** 2);
    }
    return 1.5 * Math.LN2 + (n / 2) * Math.log(x) - Math.log1p(x) / 2
      + Math.log(2 * step * total);
  };

  // log of the mean number of minima, for the dimensions below: closed forms, or by the
  // table, interpolated in u = (x-1)/(x+1) at the nodes of Chebyshev.
  const logMinima = (n, x) => {
    if (n === 2) return Math.log(circle(x).minima);
    if (n === 3) return Math.log(sphere(x).minima);
    const {last, values: {[n]: values}} = theodolite.paths.minimaTable;
    const u = (x - 1) / (x + 1);
    return 1.5 * Math.LN2 + (n / 2) * Math.log(x) - Math.log1p(x) / 2 + between(values, u, last);
  };
  const between = (values, u, last) => {
    const degree = values.length - 1;
    let [above, below] = [0, 0];
    for (let j = 0; j <= degree; j += 1) {
      const gap = u - (last * (1 - Math.cos((Math.PI * j) / degree))) / 2;
      if (Math.abs(gap) < 1e-14) return values[j];
      const weight = ((j % 2 ? -1 : 1) * (j % degree ? 1 : 0.5)) / gap;
      above += weight * values[j];
      below += weight;
    }
    return above / below;
  };
  const dimensions = () => [2, 3, ...Object.keys(theodolite.paths.minimaTable.values).map(Number)];

  return {landscape, exponent, circle, sphere, logCriticalPoints, logMinima, dimensions};
})());
