// A tree as an icicle: each row is a level, and a box is as wide as its share of the time of the box above it.
const icicle = (box, chart) => {
  const ROW = 20;
  const lefts = [], wides = [], open = [];
  // Children that together take more than their parent (work on several threads) are narrowed to its width.
  const inside = new Float64Array(chart.names.length);
  const parents = [];
  chart.names.forEach((_, number) => {
    while (open.length && chart.depths[open[open.length - 1]] >= chart.depths[number]) open.pop();
    const parent = open.length ? open[open.length - 1] : -1;
    parents.push(parent);
    if (parent >= 0) inside[parent] += chart.values[number];
    open.push(number);
  });
  const roots = chart.values.reduce((sum, value, number) => sum + (parents[number] < 0 ? value : 0), 0);
  const used = new Float64Array(chart.names.length);
  let rootsUsed = 0;
  chart.names.forEach((_, number) => {
    const parent = parents[number];
    if (parent < 0) {
      lefts.push(rootsUsed);
      wides.push(chart.values[number] / roots);
      rootsUsed += wides[number];
      return;
    }
    const whole = Math.max(chart.values[parent], inside[parent]) || 1;
    const wide = (chart.values[number] / whole) * wides[parent];
    lefts.push(lefts[parent] + used[parent]);
    wides.push(wide);
    used[parent] += wide;
  });
  const deepest = Math.max(...chart.depths);
  viewport(box, {
    height: () => (deepest + 1) * ROW,
    draw: (context, view, width) => {
      const scale = width / (view.to - view.from), ink = plots.colour("--ink"), page = plots.colour("--page");
      chart.names.forEach((name, number) => {
        const left = (lefts[number] - view.from) * scale, wide = wides[number] * scale;
        if (left > width || left + wide < 0 || wide < 0.3) return;
        const top = chart.depths[number] * ROW, begin = Math.max(0, left), end = Math.min(width, left + wide);
        context.fillStyle = shadeOf(name);
        context.fillRect(begin, top, Math.max(0.5, end - begin), ROW - 1);
        if (wide > 3) { context.fillStyle = page; context.fillRect(end - 0.5, top, 0.5, ROW - 1); }
        if (number === view.chosen) {
          context.strokeStyle = ink;
          context.lineWidth = 2;
          context.strokeRect(begin + 1, top + 1, Math.max(0, end - begin - 2), ROW - 3);
        }
        const text = fitted(context, name, end - begin - 6);
        if (text) { context.fillStyle = ink; context.fillText(text, begin + 4, top + ROW / 2); }
      });
    },
    at: (x, y, view, width) => {
      const depth = Math.floor(y / ROW), where = view.from + (x / width) * (view.to - view.from);
      const found = chart.names.findIndex((_, number) =>
        chart.depths[number] === depth && lefts[number] <= where && where < lefts[number] + wides[number]);
      return found < 0 ? null : found;
    },
    words: (number) => {
      const path = [];
      for (let at = number; at >= 0; at = parents[at]) path.unshift(chart.names[at]);
      const times = chart.counts[number] ? `, ${units.scaled(chart.counts[number])} times` : "";
      return `${path.join(" › ")}: ${units[chart.unit || "seconds"](chart.values[number])}, ${units.percent(chart.values[number] / roots)}${times}`;
    },
    range: (number) => [lefts[number], lefts[number] + wides[number]],
  });
};
