// Intervals over time in nanoseconds: a lane for each stream or thread, and in it a row for each level of nesting.
const timeline = (box, chart) => {
  const ROW = 16, HEAD = 18, AXIS = 18, DEEPEST = 16;
  let top = AXIS;
  const lanes = chart.lanes.map((lane) => {
    const ends = [];
    let levels = 1;
    const level = lane.starts.map((start, number) => {
      while (ends.length && ends[ends.length - 1] <= start) ends.pop();
      const depth = Math.min(ends.length, DEEPEST - 1);
      ends.push(start + lane.durations[number]);
      levels = Math.max(levels, depth + 1);
      return depth;
    });
    const placed = { ...lane, level, levels, top };
    top += HEAD + levels * ROW + 4;
    return placed;
  });
  const bottom = top;

  const step = (span, width) => {
    const rough = (span / width) * 90, power = 10 ** Math.floor(Math.log10(rough));
    return [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  };
  const time = (nanoseconds, size) => {
    const [scale, unit] = size >= 1e9 ? [1e9, "s"] : size >= 1e6 ? [1e6, "ms"] : size >= 1e3 ? [1e3, "µs"] : [1, "ns"];
    return `${Number((nanoseconds / scale).toFixed(3))} ${unit}`;
  };

  viewport(box, {
    margin: 0.1,
    height: () => bottom,
    draw: (context, view, width) => {
      const from = view.from * chart.span, span = (view.to - view.from) * chart.span, scale = width / span;
      const ink = plots.colour("--ink"), quiet = plots.colour("--quiet"), rule = plots.colour("--line");
      const each = step(span, width);
      for (let at = Math.ceil(from / each) * each; at < from + span; at += each) {
        const left = (at - from) * scale;
        context.fillStyle = rule;
        context.fillRect(left, 0, 1, bottom);
        context.fillStyle = quiet;
        context.fillText(time(at, each), left + 3, AXIS / 2);
      }
      const shades = new Map();
      for (const [number, lane] of lanes.entries()) {
        context.fillStyle = quiet;
        context.fillText(`${lane.device}  ${lane.name}`, 2, lane.top + HEAD / 2);
        const drawnTo = new Float64Array(lane.levels).fill(-1);
        lane.starts.forEach((start, row) => {
          const left = (start - from) * scale, right = (start + lane.durations[row] - from) * scale;
          const level = lane.level[row];
          if (right < 0 || left > width || right < drawnTo[level] + 0.4) return;
          const name = lane.names[lane.name_of[row]];
          if (!shades.has(name)) shades.set(name, shadeOf(name));
          const begin = Math.max(0, left, drawnTo[level]), end = Math.max(begin + 0.6, Math.min(width, right));
          const y = lane.top + HEAD + level * ROW;
          context.fillStyle = shades.get(name);
          context.fillRect(begin, y, end - begin - (end - begin > 3 ? 0.5 : 0), ROW - 2);
          drawnTo[level] = end;
          if (view.chosen !== null && view.chosen.lane === number && view.chosen.row === row) {
            context.strokeStyle = ink;
            context.lineWidth = 2;
            context.strokeRect(begin + 1, y + 1, Math.max(1, end - begin - 2), ROW - 4);
          }
          const text = fitted(context, name, end - begin - 6);
          if (text) { context.fillStyle = ink; context.fillText(text, begin + 3, y + ROW / 2 - 1); }
        });
      }
    },
    at: (x, y, view, width) => {
      const number = lanes.findIndex((lane) => y >= lane.top + HEAD && y < lane.top + HEAD + lane.levels * ROW);
      if (number < 0) return null;
      const lane = lanes[number], level = Math.floor((y - lane.top - HEAD) / ROW);
      const each = ((view.to - view.from) * chart.span) / width, time = view.from * chart.span + x * each;
      let nearest = -1, distance = 2 * each;
      lane.starts.forEach((start, row) => {
        if (lane.level[row] !== level) return;
        const away = Math.max(start - time, time - start - lane.durations[row], 0);
        if (away < distance) { nearest = row; distance = away; }
      });
      if (nearest < 0) return null;
      lane.items ??= new Map();
      if (!lane.items.has(nearest)) lane.items.set(nearest, { lane: number, row: nearest });
      return lane.items.get(nearest);
    },
    words: ({ lane, row }) => {
      const of = lanes[lane];
      return `${of.names[of.name_of[row]]}: ${units.seconds(of.durations[row] / 1e9)}, at ${units.seconds(of.starts[row] / 1e9)}, ${of.device} ${of.name}`;
    },
    range: ({ lane, row }) => {
      const of = lanes[lane];
      return [of.starts[row] / chart.span, (of.starts[row] + Math.max(1, of.durations[row])) / chart.span];
    },
  });
};
