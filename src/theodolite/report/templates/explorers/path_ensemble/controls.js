"use strict";
// One section of the page: what is chosen there, and what that changes.
(() => {
  const {paths} = theodolite;
  const {sliders} = paths;
  const clamp = (value, {from, to}) => Math.min(to, Math.max(from, value));

  // A measured network brings its own depth and the scale that fits it.
  const follow = (choices, ensemble) => {
    if (!ensemble) return;
    choices.kind = "residual";
    choices.depth = clamp(ensemble.depth, sliders.depth);
    if (ensemble.beta) choices.beta = clamp(Number(ensemble.beta.toPrecision(4)), sliders.beta);
  };

  // Take a new value from a control; say whether there is one.
  const take = (choices, {value, dataset: {slider, exact, choice, select}}) => {
    if (slider) choices[slider] = sliders[slider].value(Number(value));
    if (choice) choices[choice] = choice === "kind" ? value : Boolean(value);
    if (select) [choices.chosen, choices.step] = [value === "" ? null : Number(value), 0];
    if (exact) {
      const {read, from, to} = sliders[exact];
      const number = value === "" ? NaN : read(Number(value));
      if (!(number >= from && number <= to)) return false;
      choices[exact] = number;
    }
    return true;
  };

  const mount = (section) => {
    const all = (selector) => [...section.querySelectorAll(selector)];
    const [form, select] = [section.querySelector("form"), section.querySelector("[data-select]")];
    const series = paths.seriesOf(JSON.parse(section.querySelector(".explorer-data").textContent));
    const choices = {...paths.START};

    const write = (texts) => {
      for (const place of all("[data-value]")) place.textContent = texts[place.dataset.value] ?? place.textContent;
    };
    const draw = (state) => {
      for (const svg of all("[data-chart]")) paths.drawings.draw(svg, svg.dataset.chart, state);
    };
    const update = () => {
      const state = paths.stateOf(choices, series);
      showControls(section, choices, series);
      write(paths.readings(state));
      draw(state);
    };

    section.addEventListener("input", ({target}) => {
      if (!take(choices, target)) return;
      if (target === select || target.dataset.slider === "step") follow(choices, paths.chosenOf(choices, series));
      update();
    });
    section.addEventListener("change", ({target}) => {
      // A number that was refused gives way to the one in force.
      if (target.dataset.exact) target.value = choices[target.dataset.exact];
      write({said: paths.stateOf(choices, series).told});
    });
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", (event) => {
      event.preventDefault(); // the form's own first values are not ours
      Object.assign(choices, paths.START);
      update();
    });
    let waiting = 0;
    addEventListener("resize", () => {
      cancelAnimationFrame(waiting);
      waiting = requestAnimationFrame(() => draw(paths.stateOf(choices, series)));
    });

    series.forEach((one, i) => select.append(new Option(paths.nameOf(one), i)));
    section.querySelector(".explorer-body").hidden = false;
    update();
  };

  const showControls = (section, choices, series) => {
    const {kind, chosen} = choices;
    const steps = series[chosen]?.ensembles.length ?? 0;
    const two = kind === "two";
    const seen = {depth: !two, beta: kind === "residual", first: two, second: two, share: two,
                  size: true, measured: series.length > 0, step: steps > 1};
    for (const control of section.querySelectorAll("[data-for]")) control.hidden = !seen[control.dataset.for];
    for (const slider of section.querySelectorAll("[data-slider]")) {
      const {slider: name} = slider.dataset;
      slider.max = name === "step" ? Math.max(1, steps - 1) : sliders[name].last ?? slider.max;
      const value = name === "step" ? paths.chosenOf(choices, series)?.step ?? 0 : choices[name];
      showSlider(section, slider, sliders[name].place(choices[name]), sliders[name].words(value), value);
    }
    for (const one of section.querySelectorAll("[data-choice]")) {
      one.checked = one.value === (one.dataset.choice === "kind" ? kind : choices.squared ? "yes" : "");
    }
    const keys = {others: series.length > 0, measured: steps > 0};
    for (const key of section.querySelectorAll("[data-key]")) key.hidden = !(keys[key.dataset.key] ?? true);
    section.querySelector("[data-select]").value = chosen ?? "";
  };

  const showSlider = (section, slider, place, words, value) => {
    slider.value = place;
    slider.setAttribute("aria-valuetext", words);
    const exact = section.querySelector(`[data-exact="${slider.dataset.slider}"]`);
    const output = section.querySelector(`output[data-value="${slider.dataset.slider}"]`);
    if (exact && document.activeElement !== exact) exact.value = value;
    if (output) output.textContent = words;
  };

  for (const section of document.querySelectorAll('[data-explorer="path_ensemble"]')) mount(section);
})();
