// Charts that need no viewport: bars and the roofline as SVG; histograms and lines by uPlot, with values under a cursor.
const plots = (() => {
  const COLOURS = {
    kernels: "--device_busy", transfers: "--transfer", transfer_in: "--transfer", transfer_out: "--data",
    collectives_exposed: "--lower", launch_gaps: "--waiting", not_seen: "--idle",
  };
  const NAMED = [
    "import", "data", "trace", "lower", "compile", "transfer", "device_busy", "host_busy", "waiting", "paused", "run",
    "first_run", "idle",
  ];
  const variable = (state) => COLOURS[state] ?? (NAMED.includes(state) ? `--${state}` : "--idle");
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  const element = (tag, attributes, ...inside) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "fill" || name === "stroke") made.style[name] = value;
      else made.setAttribute(name, value);
    }
    made.append(...inside);
    return made;
  };

  const titled = (shape, words) => {
    const title = element("title", {});
    title.textContent = words;
    shape.append(title);
    return shape;
  };

  const legend = (box, entries) => {
    const line = document.createElement("div");
    line.className = "legend";
    for (const [name, words] of entries) {
      const item = document.createElement("span");
      const mark = document.createElement("i");
      mark.style.background = `var(${name})`;
      item.append(mark, words);
      line.append(item);
    }
    box.append(line);
  };

  const bars = (box, chart) => {
    const width = box.clientWidth;
    const labelled = chart.rows.some((row) => row.label);
    const sums = chart.rows.map((row) => row.parts.reduce((sum, part) => sum + part.seconds, 0));
    const most = Math.max(...sums);
    const each = labelled ? 40 : 24;
    const room = width - 80;
    const drawing = element("svg", { height: each * chart.rows.length, viewBox: `0 0 ${width} ${each * chart.rows.length}` });
    const seen = new Map();
    chart.rows.forEach((row, number) => {
      const top = number * each + (labelled ? 16 : 2);
      if (labelled) drawing.append(element("text", { x: 0, y: top - 4, class: "quiet" }, row.label));
      let left = 0;
      for (const part of row.parts) {
        const wide = (part.seconds / most) * room;
        const words = `${row.label} ${part.label}: ${units.seconds(part.seconds)}`.trim();
        const shape = element("rect", { x: left, y: top, width: Math.max(wide, 0.5), height: 18, fill: `var(${variable(part.state)})` });
        drawing.append(titled(shape, words));
        left += wide;
        const sum = seen.get(part.state) ?? { label: part.label, seconds: 0 };
        sum.seconds += part.seconds;
        seen.set(part.state, sum);
      }
      drawing.append(element("text", { x: left + 6, y: top + 13 }, units.seconds(sums[number])));
    });
    box.append(drawing);
    const one = chart.rows.length === 1;
    legend(box, [...seen].map(([state, part]) => [
      variable(state), one ? `${part.label} ${units.seconds(part.seconds)} (${units.percent(part.seconds / sums[0])})` : part.label,
    ]));
  };

  // The steps of an axis: round numbers of its unit, and whole numbers for counts.
  const TENS = (from) => Array.from({ length: 60 }, (_, at) => [1, 2, 5][at % 3] * 10 ** (from + Math.floor(at / 3)));
  const STEPS = { count: TENS(0), seconds: TENS(-12), bytes: Array.from({ length: 60 }, (_, at) => 2 ** at) };

  const axis = (unit, label, extra) => ({
    incrs: STEPS[unit],
    stroke: colour("--quiet"),
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { stroke: colour("--line"), width: 1 },
    font: "12px system-ui, sans-serif",
    labelFont: "12px system-ui, sans-serif",
    values: (plot, splits) => splits.map((value) => (value === null ? "" : units.of[unit](value))),
    ...(label ? { label, labelSize: 18 } : {}),
    ...extra,
  });

  const vertical = (plot, at, name, dash) => {
    const left = plot.valToPos(at, "x", true);
    plot.ctx.save();
    plot.ctx.strokeStyle = colour(name);
    plot.ctx.setLineDash(dash);
    plot.ctx.beginPath();
    plot.ctx.moveTo(left, plot.bbox.top);
    plot.ctx.lineTo(left, plot.bbox.top + plot.bbox.height);
    plot.ctx.stroke();
    plot.ctx.restore();
  };

  const histogram = (box, chart) => {
    const wide = (chart.high - chart.low) / chart.counts.length;
    const edges = chart.counts.map((_, number) => chart.low + number * wide);
    const shape = uPlot.paths.bars({ size: [1, Infinity], align: 1, gap: 1 });
    new uPlot({
      width: box.clientWidth,
      height: 150,
      legend: { show: box.clientWidth > 400 },
      cursor: { drag: { x: false, y: false } },
      scales: { x: { time: false, range: [chart.low, chart.high] }, y: { range: [0, Math.max(...chart.counts) * 1.05] } },
      axes: [axis("seconds", "", { space: 80 }), axis("count", "", { size: 40, space: 40 })],
      series: [
        { label: "from", value: (plot, value) => units.seconds(value) },
        { label: "samples", stroke: colour("--series-0"), fill: colour("--series-0"), paths: shape, points: { show: false } },
      ],
      hooks: {
        draw: [(plot) => {
          vertical(plot, chart.median, "--ink", []);
          for (const bound of chart.interval ?? []) vertical(plot, bound, "--ink", [3, 3]);
        }],
      },
    }, [edges, chart.counts], box);
  };

  const lines = (box, chart) => {
    const logarithmic = chart.logarithmic ? { distr: 3 } : {};
    const stepped = chart.stepped ? uPlot.paths.stepped({ align: 1 }) : undefined;
    const view = box.dataset.view ? JSON.parse(box.dataset.view) : null, first = chart.x[0], last = chart.x[chart.x.length - 1];
    // The visible range is kept, so that a new drawing with more data begins with it.
    const seen = (plot, scale) => {
      const { min, max } = plot.scales[scale];
      if (scale !== "x" || min === null) return;
      if (min > first || max < last) box.dataset.view = JSON.stringify([min, max]);
      else delete box.dataset.view;
    };
    const made = new uPlot({
      width: box.clientWidth,
      height: 240,
      cursor: { drag: { x: true, y: false } },
      scales: {
        x: { time: false, ...logarithmic },
        y: chart.logarithmic ? logarithmic : { range: (plot, low, high) => [0, high * 1.05 || 1] },
      },
      axes: [axis(chart.x_unit, chart.x_label, { space: 60 }), axis(chart.unit, "", { size: 72, space: 30 })],
      series: [
        { label: chart.x_label, value: (plot, value) => units.of[chart.x_unit](value) },
        ...chart.series.map((line, number) => ({
          label: line.label,
          stroke: colour(`--series-${number % 4}`),
          width: 2,
          dash: number > 3 ? [6, 4] : undefined,
          points: { show: Boolean(chart.logarithmic) },
          value: (plot, value) => units.of[chart.unit](value),
          ...(stepped ? { paths: stepped, fill: colour("--line") } : {}),
        })),
      ],
      hooks: { setScale: [seen] },
    }, [chart.x, ...chart.series.map((line) => line.values)], box);
    if (view !== null) made.setScale("x", { min: view[0], max: view[1] });
  };

  const decades = (values, margin) => {
    const logs = values.filter((value) => value > 0 && Number.isFinite(value)).map(Math.log10);
    let low = Math.min(...logs) - margin, high = Math.max(...logs) + margin;
    if (high - low < 2) { const middle = (low + high) / 2; low = middle - 1; high = middle + 1; }
    return [low, high];
  };

  const roofline = (box, chart) => {
    const width = box.clientWidth, height = Math.min(380, Math.max(240, width * 0.6));
    const left = 74, bottom = 34, top = 12, right = 10;
    const peaks = [...new Set(chart.roofs.map((roof) => roof.peak))];
    const highest = Math.max(...peaks);
    const [x0, x1] = decades([...chart.points.map((point) => point.intensity), ...peaks.map((peak) => peak / chart.bandwidth)], 0.5);
    const [y0, y1] = decades([...chart.points.map((point) => point.rate), ...peaks], 0.35);
    const across = (value) => left + ((Math.log10(value) - x0) / (x1 - x0)) * (width - left - right);
    const up = (value) => height - bottom - ((Math.log10(value) - y0) / (y1 - y0)) * (height - bottom - top);
    const drawing = element("svg", { height, viewBox: `0 0 ${width} ${height}` });
    const line = (xa, ya, xb, yb, extra) =>
      element("line", { x1: across(xa), y1: up(ya), x2: across(xb), y2: up(yb), "stroke-width": 1.5, ...extra });
    const everyX = Math.ceil((x1 - x0) / ((width - left) / 60)), everyY = Math.ceil((y1 - y0) / (height / 36));
    for (let power = Math.ceil(x0); power <= x1; power += everyX) {
      const at = across(10 ** power);
      drawing.append(element("line", { x1: at, x2: at, y1: top, y2: height - bottom, class: "axis" }));
      drawing.append(element("text", { x: at, y: height - bottom + 14, "text-anchor": "middle", class: "quiet" }, units.scaled(10 ** power)));
    }
    for (let power = Math.ceil(y0); power <= y1; power += everyY) {
      const at = up(10 ** power);
      drawing.append(element("line", { x1: left, x2: width - right, y1: at, y2: at, class: "axis" }));
      drawing.append(element("text", { x: left - 6, y: at + 4, "text-anchor": "end", class: "quiet" }, units.scaled(10 ** power)));
    }
    drawing.append(element("text", { x: width - right, y: height - 4, "text-anchor": "end", class: "quiet" }, "FLOP for each byte"));
    drawing.append(element("text", { x: left + 4, y: top + 10, class: "quiet" }, "FLOP/s"));
    const start = Math.max(10 ** x0, 10 ** y0 / chart.bandwidth), ridge = Math.min(highest / chart.bandwidth, 10 ** x1);
    drawing.append(line(start, start * chart.bandwidth, ridge, ridge * chart.bandwidth, { stroke: "var(--memory)" }));
    for (const peak of peaks) {
      const label = chart.roofs.filter((roof) => roof.peak === peak).map((roof) => roof.label).join(", ");
      const begins = Math.min(Math.max(peak / chart.bandwidth, 10 ** x0), 10 ** x1);
      drawing.append(line(begins, peak, 10 ** x1, peak, { stroke: "var(--compute)" }));
      drawing.append(element("text", { x: width - right, y: up(peak) - 4, "text-anchor": "end" }, `${label} ${units.scaled(peak, "FLOP/s")}`));
    }
    const said = document.createElement("div");
    said.className = "said";
    said.setAttribute("aria-live", "polite");
    for (const point of chart.points) {
      const fill = point.bound === "compute" ? "var(--compute)" : point.bound === "memory" ? "var(--memory)" : "var(--quiet)";
      const words = `${point.label}: ${units.scaled(point.intensity)} FLOP/B, ${units.scaled(point.rate, "FLOP/s")}` +
        `${point.measured ? "" : " at most"}, ${units.percent(point.share)} of the time${point.bound ? `, bound by ${point.bound}` : ""}`;
      const shape = element("circle", {
        cx: across(point.intensity), cy: up(point.rate), r: 3 + 7 * Math.sqrt(Math.max(point.share, 0)), "stroke-width": 1.5,
        stroke: fill, fill: point.measured ? fill : "none", "fill-opacity": 0.55, "pointer-events": "all",
      });
      shape.addEventListener("pointerenter", () => { said.textContent = words; });
      shape.addEventListener("click", () => { said.textContent = words; });
      drawing.append(titled(shape, words));
    }
    box.append(drawing, said);
    legend(box, [["--memory", `memory, ${units.scaled(chart.bandwidth, "B/s")}`], ["--compute", "compute"]]);
  };

  return { bars, histogram, lines, roofline, colour };
})();
