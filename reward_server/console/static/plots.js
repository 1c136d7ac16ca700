/* Draws what `data-plot` says: lines over turns or steps, histograms, scatters. Text goes into nodes, never into HTML. */
"use strict";
window.LabsPlots = (() => {
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colour = (i) => css(`--c${(i % 7) + 1}`);
  const short = (name) => name.replace(/^D\d_/, "").replace(/([a-z])([A-Z])/g, "$1 $2").replaceAll("_", " ");
  const made = new Map();

  const axes = (x, y) => [x, y].map((label, i) => ({
    stroke: css("--dim"), grid: { stroke: css("--line"), width: 1 }, ticks: { stroke: css("--line"), width: 1 },
    font: "11px system-ui", size: i ? 42 : 28, label: label || undefined, labelSize: 16, labelFont: "11px system-ui",
  }));

  const sized = (element, given) => ({ width: Math.max(220, element.clientWidth), height: given.height || (element.classList.contains("tall") ? 230 : 170) });

  function lines(element, given) {
    const series = given.lines.map((line, i) => ({
      label: short(line.name), stroke: colour(i), width: i ? 1.5 : 2.5, dash: i ? [4, 3] : undefined, spanGaps: true,
      points: { show: given.x.length < 60, size: i ? 4 : 6, fill: colour(i) }, value: (_, v) => (v === null || v === undefined ? "–" : (+v).toPrecision(3)),
    }));
    const whole = given.x.length <= 12;
    const [bottom, left] = axes(given.unit, given.label);
    return new uPlot({
      ...sized(element, given), cursor: { drag: { x: !whole, y: false } }, legend: { live: given.x.length > 20 },
      scales: { x: { time: false }, y: given.free ? {} : { range: [0, 1] } },
      axes: [{ ...bottom, incrs: given.unit === "turn" ? [1, 2, 5, 10, 20] : undefined }, left],
      series: [{ label: given.unit }, ...series],
    }, [given.x, ...given.lines.map((line) => line.values)], element);
  }

  function bars(element, given) {
    const [bottom, left] = axes(given.label, "");
    return new uPlot({
      ...sized(element, given), legend: { show: false }, cursor: { show: false },
      scales: { x: { time: false, range: [0, 1] }, y: { range: (_, low, high) => [0, Math.max(1, high)] } },
      axes: [bottom, left],
      series: [{}, { label: "count", fill: colour(0), stroke: colour(0), width: 0, paths: uPlot.paths.bars({ size: [0.86, 60], align: 1 }), points: { show: false } }],
    }, [given.x, given.counts], element);
  }

  function scatter(element, given) {
    const [bottom, left] = axes(given.label, "reward");
    const plot = new uPlot({
      ...sized(element, given), legend: { show: false }, cursor: { drag: { x: false, y: false }, points: { size: 9 } },
      scales: { x: { time: false, range: (_, low, high) => [0, Math.max(1, high) * 1.05] }, y: { range: [-0.03, 1.03] } },
      axes: [bottom, left],
      series: [{}, { stroke: colour(0), paths: () => null, points: { show: true, size: 6, fill: colour(0), width: 0 } }],
    }, [given.x, given.y], element);
    plot.over.style.cursor = "pointer";
    plot.over.addEventListener("click", () => {
      const at = plot.cursor.idx;
      if (at !== null && at !== undefined && given.ids) location.href = given.path + encodeURIComponent(given.ids[at]);
    });
    return plot;
  }

  function draw(element) {
    const given = JSON.parse(element.dataset.plot);
    made.get(element)?.destroy();
    element.textContent = "";
    made.set(element, { line: lines, bars, scatter }[given.kind](element, given));
  }

  function all(root) {
    for (const element of [...made.keys()]) if (!element.isConnected) { made.get(element).destroy(); made.delete(element); }
    for (const element of root.querySelectorAll("[data-plot]")) if (element.clientWidth) draw(element);
  }

  return { all };
})();
