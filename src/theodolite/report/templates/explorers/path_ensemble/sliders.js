"use strict";
// How the place of a slider and its value go together, and how the value is spoken.
theodolite.paths.sliders = (() => {
  const WHOLE = [...new Set(Array.from({length: 121}, (_, i) => Math.round(10 ** (i / 40))))];
  const nearest = (list, value) => list.reduce(
    (best, one, i) => (Math.abs(one - value) < Math.abs(list[best] - value) ? i : best), 0);

  // Whole numbers from 1 to 1000, ever wider apart; up to 2000 where typed.
  const whole = (word) => ({
    last: WHOLE.length - 1, from: 1, to: 2000, read: Math.round,
    value: (place) => WHOLE[place], place: (value) => nearest(WHOLE, value),
    words: (value) => `${word} ${value}`,
  });
  const sizes = theodolite.paths.dimensions();

  return {
    depth: whole("depth"),
    first: whole("degree"),
    second: whole("degree"),
    beta: {
      last: 240, from: 0.001, to: 1000, read: (value) => value,
      value: (place) => Number((10 ** (-2 + place / 60)).toPrecision(3)),
      place: (value) => Math.round(60 * (2 + Math.log10(value))),
      words: (value) => `β ${value}`,
    },
    share: {
      last: 100, value: (place) => place / 100, place: (value) => Math.round(100 * value),
      words: (value) => `${Math.round(100 * value)} %`,
    },
    size: {
      last: sizes.length - 1, value: (place) => sizes[place],
      place: (value) => nearest(sizes, value), words: String,
    },
    step: {value: (place) => place, place: (value) => value, words: String},
  };
})();
