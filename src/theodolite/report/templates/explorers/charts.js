"use strict";
// Axes and marks in an SVG that the page already holds; looks are left to its style.
globalThis.theodolite ??= {};
theodolite.charts = (() => {
  const MARGIN = {top: 10, right: 14, bottom: 40, left: 56};

  const scale = ({from, to, log}, low, high) => {
    const on = log ? Math.log : (value) => value;
    const [first, last] = [on(from), on(to)];
    const place = (value) => low + ((on(value) - first) / (last - first || 1)) * (high - low);
    return (value) => Math.min(1e5, Math.max(-1e5, place(value)));
  };

  // Round numbers, about as many as asked for.
  const ticks = ({from, to, log, whole}, count) => {
    if (log) return decades(from, to, count);
    const rough = Math.max((to - from) / count, whole ? 1 : 0);
    const unit = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((one) => one * unit).find((one) => one >= rough);
    const first = Math.ceil(from / step - 1e-9);
    const last = Math.floor(to / step + 1e-9);
    return Array.from({length: last - first + 1}, (_, i) => (first + i) * step);
  };
  const decades = (from, to, count) => {
    const found = [];
    const few = Math.log10(to / from) < count / 2;
    for (let power = Math.floor(Math.log10(from)); 10 ** power <= to * 1.001; power += 1) {
      for (const one of few ? [1, 2, 5] : [1]) found.push(one * 10 ** power);
    }
    return found.filter((one) => one >= from * 0.999 && one <= to * 1.001);
  };

  // Four digits, and powers of ten where a number is large or small.
  const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹";
  const raised = (power) => (power < 0 ? "⁻" : "")
    + [...String(Math.abs(power))].map((digit) => RAISED[digit]).join("");
  const number = (value, digits = 4) => {
    if (value === null || value === undefined || !Number.isFinite(value)) return "—";
    if (value === 0) return "0";
    const size = Math.floor(Math.log10(Math.abs(Number(value.toPrecision(digits)))));
    const minus = (text) => text.replace("-", "−");
    if (size < 5 && size > -4) {
      return minus(String(Number(value.toPrecision(Math.max(digits, size + 1)))));
    }
    const factor = Number((value / 10 ** size).toPrecision(digits));
    return minus(`${factor === 1 ? "" : `${factor} × `}10${raised(size)}`);
  };
  // The same of exp(log), also where that is beyond all floats.
  const exponential = (log, digits = 4) => {
    if (log < 600) return number(Math.exp(log), digits);
    const power = Math.floor(log / Math.LN10);
    const factor = Math.exp(log - power * Math.LN10);
    return `${Number(factor.toPrecision(digits))} × 10${raised(power)}`;
  };

  const add = (parent, name, attributes, text) => {
    const element = document.createElementNS(parent.namespaceURI, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    parent.append(element);
    return element;
  };

  const path = (points, x, y) => points
    .map(([a, b], i) => `${i ? "L" : "M"}${x(a).toFixed(1)} ${y(b).toFixed(1)}`).join("");

  const DRAW = {
    line: (group, {points}, x, y) => add(group, "path", {d: path(points, x, y)}),
    area: (group, {points}, x, y, {base}) => points.length && add(group, "path", {
      d: `${path(points, x, y)}L${x(points.at(-1)[0]).toFixed(1)} ${base}L${x(points[0][0]).toFixed(1)} ${base}Z`,
    }),
    bars: (group, {points, width}, x, y, {base}) => points.forEach(([a, b]) => {
      const [left, right] = [x(a - width / 2), x(a + width / 2)];
      add(group, "rect", {x: left.toFixed(2), width: Math.max(0.5, right - left).toFixed(2),
                          y: y(b).toFixed(2), height: Math.max(0, base - y(b)).toFixed(2)});
    }),
    dots: (group, {points, radius = 4}, x, y) => points.forEach(([a, b, error]) => {
      const [cx, cy] = [x(a).toFixed(1), y(b).toFixed(1)];
      if (error > 0) add(group, "path", {d: `M${cx} ${y(b - error).toFixed(1)}V${y(b + error).toFixed(1)}`});
      add(group, "circle", {cx, cy, r: radius});
    }),
    upright: (group, {at}, x, y, {top, base}) => add(group, "path", {d: `M${x(at).toFixed(1)} ${top}V${base}`}),
    level: (group, {at}, x, y, {left, right}) => add(group, "path", {d: `M${left} ${y(at).toFixed(1)}H${right}`}),
    band: (group, {from, to}, x, y, {top, base}) => add(group, "rect", {
      x: x(from).toFixed(1), width: Math.max(0, x(to) - x(from)).toFixed(1), y: top, height: base - top}),
  };

  let clips = 0;
  // Draw marks, each with a kind and a name for the style, on axes x and y.
  const draw = (svg, {x, y, marks, label}) => {
    const wide = Math.max(240, Math.round(svg.parentElement.clientWidth) || 640);
    const tall = Math.round(Math.min(300, Math.max(200, wide * 0.6)));
    svg.setAttribute("viewBox", `0 0 ${wide} ${tall}`);
    svg.setAttribute("aria-label", label);
    svg.replaceChildren();
    const frame = {left: MARGIN.left, right: wide - MARGIN.right, top: MARGIN.top, base: tall - MARGIN.bottom};
    const [toX, toY] = [scale(x, frame.left, frame.right), scale(y, frame.base, frame.top)];
    axes(svg, {x, y}, toX, toY, frame);
    const clip = svg.dataset.clip ??= `explorer-clip-${clips += 1}`;
    const box = add(svg, "clipPath", {id: clip});
    add(box, "rect", {x: frame.left - 5, y: frame.top - 5, width: frame.right - frame.left + 10, height: frame.base - frame.top + 5.5});
    const plot = add(svg, "g", {"clip-path": `url(#${clip})`});
    for (const mark of marks) DRAW[mark.kind](add(plot, "g", {class: `${mark.kind} ${mark.name}`}), mark, toX, toY, frame);
  };

  const axes = (svg, {x, y}, toX, toY, {left, right, top, base}) => {
    const group = add(svg, "g", {class: "axes"});
    for (const value of ticks(y, (base - top) / 40)) {
      const at = toY(value).toFixed(1);
      add(group, "path", {class: "grid", d: `M${left} ${at}H${right}`});
      add(group, "text", {x: left - 7, y: at, dy: "0.32em", "text-anchor": "end"}, number(value, 3));
    }
    for (const value of ticks(x, (right - left) / 70)) {
      const at = toX(value).toFixed(1);
      add(group, "path", {class: "tick", d: `M${at} ${base}v4`});
      add(group, "text", {x: at, y: base + 16, "text-anchor": "middle"}, number(value, 3));
    }
    add(group, "path", {class: "axis", d: `M${left} ${base}H${right}`});
    add(group, "text", {class: "name", x: (left + right) / 2, y: base + 34, "text-anchor": "middle"}, x.label);
    const middle = (top + base) / 2;
    add(group, "text", {class: "name", x: 12, y: middle, "text-anchor": "middle", transform: `rotate(-90 12 ${middle})`}, y.label);
  };

  return {draw, number, exponential, ticks};
})();
